// What a call of a module says that it returns, and what finding that out leaves as it was.
#include "graph/module_inference.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/graph.h"

namespace weir::graph {
namespace {

using ::testing::HasSubstr;
using Dims = std::vector<std::int64_t>;

/// A module without tensors whose forward is a function.
struct LambdaImpl : torch::nn::Cloneable<LambdaImpl> {
  using Forward = std::function<at::Tensor(const at::Tensor&)>;
  explicit LambdaImpl(Forward function) : run(std::move(function)) {}
  void reset() override {}
  at::Tensor forward(const at::Tensor& x) { return run(x); }
  Forward run;
};

/// The shape of what `module` makes of floats of `dims`.
template <class M>
Shape ShapeOf(std::shared_ptr<M> module, const Dims& dims) {
  Graph graph;
  Module node(graph, std::move(module), "net");
  const auto outputs = node({graph.Placeholder("x", at::kFloat, dims)});
  EXPECT_EQ(outputs.size(), 1u) << graph.status();
  return outputs.empty() ? Shape{} : outputs[0].shape();
}

std::shared_ptr<LambdaImpl> Lambda(LambdaImpl::Forward forward) {
  return std::make_shared<LambdaImpl>(std::move(forward));
}

TEST(ModuleInference, WindowsTakeImagesOfAnySizeThatHoldsThem) {
  using torch::nn::Conv1dOptions;
  EXPECT_EQ(ShapeOf(std::make_shared<torch::nn::Conv2dImpl>(1, 4, 5), {-1, 1, -1, -1}),
            Shape({-1, 4, -1, -1}));
  EXPECT_EQ(ShapeOf(std::make_shared<torch::nn::Conv2dImpl>(1, 4, 17), {-1, 1, -1, -1}),
            Shape({-1, 4, -1, -1}));
  EXPECT_EQ(ShapeOf(std::make_shared<torch::nn::Conv2dImpl>(3, 4, 64), {-1, 3, -1, -1}),
            Shape({-1, 4, -1, -1}));
  EXPECT_EQ(
      ShapeOf(std::make_shared<torch::nn::Conv1dImpl>(Conv1dOptions(1, 2, 4).stride(4).padding(2)),
              {-1, 1, -1}),
      Shape({-1, 2, -1}));
  EXPECT_EQ(ShapeOf(std::make_shared<torch::nn::Conv1dImpl>(
                        Conv1dOptions(1, 2, 32).stride(32).padding(16)),
                    {3, 1, -1}),
            Shape({3, 2, -1}));
}

TEST(ModuleInference, ASizeThatOnlySomeDivideOrEqualIsFound) {
  EXPECT_EQ(ShapeOf(Lambda([](const at::Tensor& x) { return x.reshape({-1, 8}); }), {-1}),
            Shape({-1, 8}));
  EXPECT_EQ(ShapeOf(std::make_shared<torch::nn::LinearImpl>(6, 5), {-1, -1}), Shape({-1, 5}));
  EXPECT_EQ(ShapeOf(std::make_shared<torch::nn::LinearImpl>(6, 5), {-1, -1, -1}),
            Shape({-1, -1, 5}));
}

TEST(ModuleInference, OneRowOftenIsAnotherCase) {
  EXPECT_EQ(ShapeOf(Lambda([](const at::Tensor& x) { return x.squeeze(0); }), {-1, 4}),
            std::nullopt);
  EXPECT_EQ(ShapeOf(std::make_shared<torch::nn::BatchNorm1dImpl>(4), {-1, 4}), Shape({-1, 4}))
      << "which it refuses in training";
}

TEST(ModuleInference, WhatIsKnownIsTriedOnce) {
  int runs = 0;
  const auto count = Lambda([&](const at::Tensor& x) {
    ++runs;
    return x.clone();
  });
  EXPECT_EQ(ShapeOf(count, {2, 3}), Shape({2, 3}));
  EXPECT_EQ(runs, 1);
}

TEST(ModuleInference, DeepNetsAreNotTriedOnLargeImages) {
  std::int64_t most = 0;
  const auto large = Lambda([&](const at::Tensor& x) {
    most = std::max(most, x.numel());
    return x.mean();
  });
  EXPECT_EQ(ShapeOf(large, {-1, 3, 224, 224}), Shape(Dims{}));
  EXPECT_EQ(most, 11 * 3 * 224 * 224);
}

TEST(ModuleInference, WhatSuitsNoSizeSaysWhich) {
  Graph graph;
  Module module(graph, Lambda([](const at::Tensor& x) { return x.reshape({-1, 997}); }), "net");
  EXPECT_TRUE(module({graph.Placeholder("x", at::kFloat, {-1, 2})}).empty());
  const std::string message(graph.status().message());
  EXPECT_THAT(message, HasSubstr("module 'net'"));
  EXPECT_THAT(message, HasSubstr("1, 2, 7, 11, 24, 120"));
  EXPECT_THAT(message, HasSubstr("997"));
}

struct AuxiliaryImpl : torch::nn::Cloneable<AuxiliaryImpl> {
  AuxiliaryImpl() { reset(); }
  void reset() override {
    norm = register_module("norm", torch::nn::BatchNorm1d(4));
    calls = 0;
  }
  std::vector<at::Tensor> forward(const at::Tensor& x) {
    const at::Tensor y = norm(x);
    ++calls;
    if (!is_training()) return {y};
    return {y, at::full({1}, calls)};
  }
  torch::nn::BatchNorm1d norm{nullptr};
  int calls = 0;
};

TEST(ModuleInference, IsMadeInTheModeOfTheCall) {
  Graph graph;
  const auto net = std::make_shared<AuxiliaryImpl>();
  Module module(graph, net, "net");
  const Output x = graph.Placeholder("x", at::kFloat, {-1, 4});
  EXPECT_EQ(module({x}).size(), 2u) << graph.status();
  net->eval();
  EXPECT_EQ(module({x}).size(), 1u) << graph.status();
}

TEST(ModuleInference, LeavesTheModuleAndWhatRunsAsTheyWere) {
  Graph graph;
  const auto net = std::make_shared<AuxiliaryImpl>();
  Module module(graph, net, "net");
  ASSERT_EQ(module({graph.Placeholder("x", at::kFloat, {-1, 4})}).size(), 2u) << graph.status();
  EXPECT_EQ(net->calls, 0);
  EXPECT_EQ(net->norm->num_batches_tracked.item<std::int64_t>(), 0);
  std::vector<at::Tensor> values = {at::ones({2, 4})};
  for (const at::Tensor& parameter : net->parameters()) values.push_back(parameter.detach());
  for (const at::Tensor& buffer : net->buffers()) values.push_back(buffer);
  const auto outputs = graph.functions().at(0)(values);
  ASSERT_EQ(outputs.size(), 5u);
  EXPECT_EQ(outputs[1].item<std::int64_t>(), 1) << "the first run of this copy";
}

TEST(ModuleInference, LeavesTheGeneratorOfTheProcess) {
  const auto drop = Lambda([](const at::Tensor& x) { return at::dropout(x, 0.5, true); });
  at::manual_seed(7);
  const at::Tensor expected = at::rand({3});
  at::manual_seed(7);
  EXPECT_EQ(ShapeOf(drop, {-1, 4}), Shape({-1, 4}));
  EXPECT_TRUE(at::equal(at::rand({3}), expected));
}

}  // namespace
}  // namespace weir::graph
