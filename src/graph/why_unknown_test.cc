#include "graph/why_unknown.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/ops.h"

namespace weir::graph {
namespace {

TEST(WhyUnknownTest, NamesTheFirstOperatorThatDoesNotFit) {
  Graph graph;
  const auto x = graph.Placeholder("x", at::kFloat, {-1, 4});
  const auto w = graph.Const(at::ones({5, 1}), "w");
  const auto product = ops::matmul(x, w);
  const auto loss = ops::sum(ops::relu(product));
  ASSERT_TRUE(graph.status().ok()) << graph.status();
  const std::string why = WhyUnknown(graph.def(), loss.node());
  EXPECT_THAT(why, testing::HasSubstr("node 'matmul' (aten::matmul)"));
  EXPECT_THAT(why, testing::HasSubstr("'x' float32[?, 4]"));
  EXPECT_THAT(why, testing::HasSubstr("'w' float32[5, 1]"));
  EXPECT_EQ(WhyUnknown(graph.def(), x.node()), "");
}

}  // namespace
}  // namespace weir::graph
