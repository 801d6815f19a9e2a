#include "graph/shape_inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "graph/graph_testing.h"
#include "weir/ops.h"

namespace weir::graph {
namespace {

using ::testing::HasSubstr;

std::string Errors(const Graph& graph) {
  return std::string(graph.status().message());
}

std::string Text(const Output& output) {
  return ToText(std::as_const(*output.graph())
                    .node(output.node())
                    .outputs[static_cast<std::size_t>(output.index())]);
}

class ShapeInference : public ::testing::Test {
 protected:
  Output Float(std::vector<std::int64_t> shape) {
    return graph_.Placeholder("f", at::kFloat, std::move(shape));
  }
  Output Long(std::vector<std::int64_t> shape) {
    return graph_.Placeholder("l", at::kLong, std::move(shape));
  }
  void TearDown() override { EXPECT_TRUE(!expect_ok_ || graph_.status().ok()) << graph_.status(); }

  Graph graph_;
  bool expect_ok_ = true;
};

TEST_F(ShapeInference, MlpWithUnknownBatch) {
  const Output images = Float({-1, 784});
  const Output labels = Long({-1});
  const Variable w1 = graph_.Variable("w1", Zeros({784, 100}));
  const Variable b1 = graph_.Variable("b1", Zeros({100}));
  const Variable w2 = graph_.Variable("w2", Zeros({100, 10}));
  const Variable b2 = graph_.Variable("b2", Zeros({10}));
  const Output hidden = ops::relu(ops::matmul(images, w1) + b1);
  EXPECT_EQ(Text(hidden), "float32 {-1, 100} differentiable");
  const Output logits = ops::matmul(hidden, w2) + b2;
  EXPECT_EQ(Text(logits), "float32 {-1, 10} differentiable");
  EXPECT_EQ(Text(ops::cross_entropy_loss(logits, labels)), "float32 {} differentiable");
  EXPECT_EQ(Text(ops::accuracy(logits, labels)), "float32 {}");
}

TEST_F(ShapeInference, CnnWithUnknownBatch) {
  const Output images = ops::reshape(Float({-1, 784}), {-1, 1, 28, 28});
  EXPECT_EQ(Text(images), "float32 {-1, 1, 28, 28} differentiable");
  const Variable kernel = graph_.Variable("kernel", Zeros({32, 1, 5, 5}));
  const Variable bias = graph_.Variable("bias", Zeros({32}));
  const Variable w = graph_.Variable("w", Zeros({10, 32 * 12 * 12}));
  const Output features = ops::relu(ops::conv2d(images, kernel, bias));
  EXPECT_EQ(Text(features), "float32 {-1, 32, 24, 24} differentiable");
  const Output pooled = ops::max_pool2d(features, {2, 2});
  EXPECT_EQ(Text(pooled), "float32 {-1, 32, 12, 12} differentiable");
  const Output logits = ops::linear(ops::flatten(pooled), w);
  EXPECT_EQ(Text(logits), "float32 {-1, 10} differentiable");
  EXPECT_EQ(Text(ops::cross_entropy_loss(logits, Long({-1}))), "float32 {} differentiable");
  EXPECT_EQ(Text(ops::dropout(logits, 0.5)), "float32 {-1, 10} differentiable");
}

TEST_F(ShapeInference, AttentionWithUnknownBatchAndLength) {
  const Output x = Float({-1, -1, 64});
  EXPECT_EQ(Text(ops::layer_norm(x, {64})), "float32 {-1, -1, 64} differentiable");
  const Output q = Float({-1, 4, -1, 16});
  const Output mixed = graph_.Aten("aten::scaled_dot_product_attention", "", {q, q, q})[0];
  EXPECT_EQ(Text(mixed), "float32 {-1, 4, -1, 16} differentiable");
  EXPECT_EQ(Text(ops::flatten(ops::transpose(mixed, 1, 2), 2)),
            "float32 {-1, -1, 64} differentiable");
}

TEST_F(ShapeInference, AnUnknownDimensionMayHaveToEqualAKnownOne) {
  const Output x = Float({-1, -1});
  const Output w = Float({784, 10});
  EXPECT_EQ(Text(ops::matmul(x, w)), "float32 {-1, 10} differentiable");
  EXPECT_EQ(Text(Float({-1}) + Float({10})), "float32 {10} differentiable");
  EXPECT_EQ(Text(ops::cat({Float({-1, 3}), Float({5, -1})})), "float32 {-1, 3} differentiable");
}

TEST_F(ShapeInference, UnknownDimensionsMayDiffer) {
  // Neither equal nor unequal is assumed of the two batches.
  const Output a = Float({-1, 3});
  const Output b = Float({-1, 3});
  EXPECT_EQ(Text(ops::cat({a, b})), "float32 {-1, 3} differentiable");
  EXPECT_EQ(Text(ops::matmul(a, ops::transpose(b, 0, 1))), "float32 {-1, -1} differentiable");
}

TEST_F(ShapeInference, ClaimsNothingThatHoldsForOneSizeOnly) {
  EXPECT_EQ(Text(ops::slice(Float({-1}), 0, 0, 5)), "float32 {-1} differentiable");
  EXPECT_EQ(Text(graph_.Aten("aten::squeeze", "", {Float({-1, 3})})[0]),
            "float32 ? differentiable");
  EXPECT_EQ(Text(graph_.Aten("aten::pixel_shuffle", "", {Float({1, -1, 4, 4}), 2})[0]),
            "float32 {1, -1, 8, 8} differentiable");
}

TEST_F(ShapeInference, DivisionOfUnknownDimensions) {
  const Output x = Float({-1, 12});
  EXPECT_EQ(Text(ops::reshape(x, {-1, 4, 3})), "float32 {-1, 4, 3} differentiable");
  EXPECT_EQ(Text(ops::reshape(x, {5, -1})), "float32 {5, -1} differentiable");
  const auto parts =
      graph_.Aten("aten::split_with_sizes", "", {Float({-1, 2}), std::vector<std::int64_t>{60, 4}});
  ASSERT_EQ(parts.size(), 2);
  EXPECT_EQ(parts[0].dtype(), at::kFloat);
}

TEST_F(ShapeInference, TheNumberOfOutputsMustBeKnown) {
  expect_ok_ = false;
  EXPECT_EQ(ops::split(Float({7, 2}), 3).size(), 3);
  EXPECT_EQ(ops::split(Float({-1, 2}), 3).size(), 1);
  EXPECT_THAT(Errors(graph_), HasSubstr("node 'split_1': how many tensors it returns depends on"));
}

TEST_F(ShapeInference, UnknownRankStaysUnknown) {
  const Output x = graph_.Aten("aten::squeeze", "", {Float({-1, 3})})[0];
  EXPECT_EQ(Text(ops::relu(x)), "float32 ? differentiable");
  EXPECT_EQ(Text(ops::sum(x)), "float32 {} differentiable");
  EXPECT_EQ(Text(ops::reshape(x, {-1})), "float32 {-1} differentiable");
}

TEST_F(ShapeInference, ShapesThatDependOnDataAreUnknown) {
  EXPECT_EQ(Text(graph_.Aten("aten::nonzero", "", {Float({3, 4})})[0]), "int64 {-1, -1}");
  const Output mask = graph_.Placeholder("mask", at::kBool, {3});
  EXPECT_EQ(Text(graph_.Aten("aten::masked_select", "", {Float({3}), mask})[0]),
            "float32 {-1} differentiable");
  EXPECT_EQ(Text(graph_.Aten("aten::_unique2", "", {Long({9})})[0]), "int64 {-1}");
  EXPECT_EQ(Text(graph_.Aten("aten::bincount", "", {Long({9})})[0]), "int64 {-1}");
  EXPECT_EQ(Text(graph_.Aten("aten::one_hot", "", {Long({9}), 10})[0]), "int64 {9, 10}");
}

TEST_F(ShapeInference, LargeTablesAreNotTouched) {
  const Variable table = graph_.Variable("table", Zeros({50'000'000, 64}));
  EXPECT_EQ(Text(ops::embedding(table, Long({-1, 20}))), "float32 {-1, 20, 64} differentiable");
  EXPECT_EQ(Text(graph_.Aten("aten::index_select", "", {table.read(), 0, Long({-1})})[0]),
            "float32 {-1, 64} differentiable");
  EXPECT_EQ(Text(ops::layer_norm(Float({4096, 8192}), {8192})),
            "float32 {4096, 8192} differentiable");
}

TEST_F(ShapeInference, LargeConvolutionsAreNotRun) {
  const auto start = std::chrono::steady_clock::now();
  const Variable kernel = graph_.Variable("kernel", Zeros({512, 512, 3, 3}));
  const Output x = Float({256, 512, 224, 224});
  EXPECT_EQ(Text(ops::conv2d(x, kernel, {}, {1, 1}, {1, 1})),
            "float32 {256, 512, 224, 224} differentiable");
  EXPECT_EQ(Text(ops::conv2d(Float({512, 224, 224}), kernel, {}, {2, 2})),
            "float32 {512, 111, 111} differentiable");
  const Variable transposed = graph_.Variable("transposed", Zeros({512, 64, 2, 2}));
  EXPECT_EQ(
      Text(graph_.Aten("aten::conv_transpose2d", "input", {x, transposed.read(), Output(), 2})[0]),
      "float32 {256, 64, 448, 448} differentiable");
  // Run once, the first of them alone would take minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST_F(ShapeInference, ConvolutionErrorsAreLibtorchs) {
  expect_ok_ = false;
  ops::conv2d(Float({-1, 3, 8, 8}), Float({4, 1, 3, 3}));
  ops::conv2d(Float({2, 3, 8, 8}), Float({4, 1, 3, 3}));
  EXPECT_THAT(Errors(graph_), HasSubstr("node 'conv2d_1' (aten::conv2d): Given groups=1, weight of "
                                        "size [4, 1, 3, 3]"));
}

TEST_F(ShapeInference, DifferentiableIsWhatAutogradSays) {
  const Output x = Float({4, 3});
  EXPECT_EQ(Text(ops::relu(x)), "float32 {4, 3} differentiable");
  EXPECT_EQ(Text(ops::argmax(x, 1)), "int64 {4}");
  EXPECT_EQ(Text(ops::eq(x, x)), "bool {4, 3}");
  EXPECT_EQ(Text(ops::to(x, at::kDouble)), "float64 {4, 3} differentiable");
  EXPECT_EQ(Text(ops::to(x, at::kLong)), "int64 {4, 3}");
  EXPECT_EQ(Text(graph_.Aten("aten::detach", "", {x})[0]), "float32 {4, 3}");
  const auto sorted = graph_.Aten("aten::sort", "", {x});
  ASSERT_EQ(sorted.size(), 2);
  EXPECT_EQ(Text(sorted[0]), "float32 {4, 3} differentiable");
  EXPECT_EQ(Text(sorted[1]), "int64 {4, 3}");
}

TEST_F(ShapeInference, FactoriesMakeNothing) {
  const std::vector<std::int64_t> huge = {1 << 20, 1 << 20};
  EXPECT_EQ(Text(graph_.Aten("aten::zeros", "", {huge})[0]), "float32 {1048576, 1048576}");
  EXPECT_EQ(Text(graph_.Aten("aten::rand", "generator", {huge, std::monostate(), at::kDouble})[0]),
            "float64 {1048576, 1048576}");
  EXPECT_EQ(Text(graph_.Aten("aten::arange", "", {10})[0]), "int64 {10}");
}

TEST_F(ShapeInference, MixedDtypesArePromoted) {
  EXPECT_EQ(Text(Float({2}) + Long({2})), "float32 {2} differentiable");
}

TEST_F(ShapeInference, DtypesThatDoNotGoTogetherAreErrors) {
  expect_ok_ = false;
  ops::matmul(Float({2, 2}), Long({2, 2}));
  EXPECT_THAT(Errors(graph_), HasSubstr("node 'matmul' (aten::matmul): expected"));
}

TEST_F(ShapeInference, ASizeBeyondMemoryIsAnErrorOfItsNode) {
  expect_ok_ = false;
  ops::neg(Float({std::int64_t{1} << 62}));
  EXPECT_THAT(Errors(graph_), HasSubstr("node 'neg'"));
}

TEST_F(ShapeInference, WrongShapesAreErrorsOnlyWhereAllIsKnown) {
  ops::matmul(Float({-1, 3}), Float({4, -1}));  // 3 is not 4, but nothing says it with an unknown
  EXPECT_TRUE(graph_.status().ok());
  expect_ok_ = false;
  ops::matmul(Float({2, 3}), Float({4, 2}));
  EXPECT_THAT(Errors(graph_), HasSubstr("node 'matmul_1'"));
}

}  // namespace
}  // namespace weir::graph
