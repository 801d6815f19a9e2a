#include "graph/module_call.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/cloneable.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace weir::graph {
namespace {

/// A call of M with `num_inputs` inputs.
template <class M>
ModuleCall CallOf(std::shared_ptr<M> module, std::size_t num_inputs, bool changes) {
  return {std::make_shared<ModuleReplicas>(std::move(module)), ForwardOf<M>(), num_inputs, changes};
}

struct TableImpl : torch::nn::Cloneable<TableImpl> {
  TableImpl() { reset(); }
  void reset() override { table = register_buffer("table", at::zeros({4, 2})); }
  at::Tensor forward(const at::Tensor& rows) {
    table.index_fill_(0, rows, 1);
    return rows.clone();
  }
  at::Tensor table;
};

TEST(ModuleCall, SaysOfATableTheRowsThatChanged) {
  const ModuleCall call = CallOf(std::make_shared<TableImpl>(), 1, true);
  const at::Tensor table = at::arange(8, at::kFloat).reshape({4, 2});
  auto outputs = call({at::tensor({1, 3}, at::kLong), table});
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_TRUE(at::equal(outputs[1], at::tensor({1, 3}, at::kLong)));
  EXPECT_TRUE(at::equal(outputs[2], at::tensor({-1.F, -2.F, -5.F, -6.F}).reshape({2, 2})));
  outputs = call({at::empty({0}, at::kLong), table});
  ASSERT_EQ(outputs.size(), 3u);
  EXPECT_EQ(outputs[1].numel(), 0);
  EXPECT_EQ(outputs[2].sizes(), at::IntArrayRef({0, 2}));
}

TEST(ModuleCall, SaysNothingOfBuffersWhenNotAsked) {
  const ModuleCall call = CallOf(std::make_shared<TableImpl>(), 1, false);
  EXPECT_EQ(call({at::tensor({1}, at::kLong), at::zeros({4, 2})}).size(), 1u);
}

/// Counts copies of a module: live ones.
struct Counted {
  Counted() { ++live; }
  Counted(const Counted&) { ++live; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --live; }
  static inline std::atomic<int> live = 0;
};

/// Returns what it holds: a parameter, a buffer, and a result that stays in a member.
struct HolderImpl : torch::nn::Cloneable<HolderImpl> {
  HolderImpl() { reset(); }
  void reset() override {
    constant = register_parameter("constant", at::zeros({2}));
    total = register_buffer("total", at::zeros({2}));
  }
  std::vector<at::Tensor> forward(const at::Tensor& x) {
    product = x * constant;
    total.add_(product);
    return {constant, total, product};
  }
  Counted counted;
  at::Tensor constant, total, product;
};

std::vector<at::Tensor> HolderValues(float constant) {
  return {at::tensor({2.F, 3.F}), at::full({2}, constant).set_requires_grad(true), at::ones({2})};
}

void ExpectHolderOutputs(const std::vector<at::Tensor>& outputs, float constant) {
  EXPECT_TRUE(at::equal(outputs[0], at::full({2}, constant))) << outputs[0];
  EXPECT_TRUE(at::equal(outputs[1], constant * at::tensor({2.F, 3.F}) + 1)) << outputs[1];
  EXPECT_TRUE(at::equal(outputs[2], constant * at::tensor({2.F, 3.F}))) << outputs[2];
}

TEST(ModuleCall, WhatItReturnedOfItsOwnIsNotChangedByTheNextOne) {
  const ModuleCall call = CallOf(std::make_shared<HolderImpl>(), 1, false);
  const at::NoGradGuard no_grad;
  const auto first = call(HolderValues(1));
  ExpectHolderOutputs(first, 1);
  ExpectHolderOutputs(call(HolderValues(5)), 5);
  ExpectHolderOutputs(first, 1);
}

TEST(ModuleCall, ItsOwnParameterAndBufferAreDifferentiated) {
  const ModuleCall call = CallOf(std::make_shared<HolderImpl>(), 1, true);
  const auto values = HolderValues(2);
  const auto outputs = call(values);
  ExpectHolderOutputs(outputs, 2);
  ASSERT_EQ(outputs.size(), 4u);
  EXPECT_FALSE(outputs[3].requires_grad());
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(outputs[i].requires_grad()) << i;
  const at::Tensor sum = outputs[0].sum() + 10 * outputs[1].sum() + 100 * outputs[2].sum();
  const auto gradients = torch::autograd::grad({sum}, {values[1]});
  EXPECT_TRUE(at::equal(gradients[0], 1 + 110 * values[0]));
}

TEST(ModuleCall, CopiesServeAgainWhateverTheyReturn) {
  const auto module = std::make_shared<HolderImpl>();
  const ModuleCall call = CallOf(module, 1, true);
  {
    const auto one = call(HolderValues(1));
    const auto beside = call(HolderValues(2));
    EXPECT_EQ(Counted::live, 3) << "autograd needs both";
  }
  for (int step = 0; step < 5; ++step) ExpectHolderOutputs(call(HolderValues(1)), 1);
  EXPECT_EQ(Counted::live, 3) << "the module and as many copies as were in use at once";
}

TEST(ModuleCall, SeveralAtATimeDoNotSeeEachOther) {
  const ModuleCall call = CallOf(std::make_shared<HolderImpl>(), 1, true);
  const auto run = [&](float constant) {
    for (int step = 0; step < 50; ++step) {
      const auto values = HolderValues(constant);
      const auto outputs = call(values);
      ExpectHolderOutputs(outputs, constant);
      const auto gradients = torch::autograd::grad({outputs[1].sum()}, {values[1]});
      EXPECT_TRUE(at::equal(gradients[0], values[0]));
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 1; thread <= 4; ++thread) threads.emplace_back(run, static_cast<float>(thread));
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace weir::graph
