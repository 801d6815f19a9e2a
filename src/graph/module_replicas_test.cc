#include "graph/module_replicas.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <vector>

namespace weir::graph {
namespace {

at::Tensor Row(float a, float b) {
  return at::tensor({a, b}).reshape({1, 2});
}

at::Tensor Forward(const ModuleReplica& replica, const at::Tensor& x) {
  return dynamic_cast<torch::nn::LinearImpl&>(*replica.module).forward(x);
}

std::vector<at::Tensor> Weights(double value) {
  return {at::full({1, 2}, value).set_requires_grad(true), at::zeros({1}).set_requires_grad(true)};
}

std::shared_ptr<ModuleReplicas> LinearReplicas() {
  return std::make_shared<ModuleReplicas>(std::make_shared<torch::nn::LinearImpl>(2, 1));
}

TEST(ModuleReplicas, OnesInUseDoNotSeeEachOther) {
  const auto replicas = LinearReplicas();
  const at::Tensor x = Row(1, 2);
  const auto first = replicas->Take();
  const auto second = replicas->Take();
  ASSERT_NE(first, second);
  const std::vector<at::Tensor> ones = Weights(1);
  const std::vector<at::Tensor> tens = Weights(10);
  first->Bind(ones);
  second->Bind(tens);
  const at::Tensor y = at::square(Forward(*first, x));
  const at::Tensor z = at::square(Forward(*second, x));
  EXPECT_EQ(y.item<double>(), 9);
  EXPECT_EQ(z.item<double>(), 900);
  const auto of_y = torch::autograd::grad({y}, {ones[0]});
  const auto of_z = torch::autograd::grad({z}, {tens[0]});
  EXPECT_TRUE(at::equal(of_y[0], Row(6, 12)));
  EXPECT_TRUE(at::equal(of_z[0], Row(60, 120)));
}

TEST(ModuleReplicas, OneThatIsFreeServesAgainAndHoldsNothing) {
  const auto replicas = LinearReplicas();
  const ModuleReplica* used = nullptr;
  std::vector<at::Tensor> weights = Weights(1);
  {
    const auto replica = replicas->Take();
    used = replica.get();
    replica->Bind(weights);
  }
  EXPECT_EQ(weights[0].storage().use_count(), 1u);
  const auto again = replicas->Take();
  EXPECT_EQ(again.get(), used);
  const at::NoGradGuard no_grad;
  again->Bind(Weights(3));
  const at::Tensor y = Forward(*again, Row(1, 2));
  EXPECT_EQ(y.item<double>(), 9);
  EXPECT_FALSE(y.requires_grad());
}

TEST(ModuleReplicas, MakingThemLeavesTheGeneratorOfTheProcess) {
  const auto replicas = LinearReplicas();
  at::manual_seed(7);
  const at::Tensor expected = at::rand({3});
  at::manual_seed(7);
  const auto first = replicas->Take();
  const auto second = replicas->Take();
  EXPECT_TRUE(at::equal(at::rand({3}), expected));
}

}  // namespace
}  // namespace weir::graph
