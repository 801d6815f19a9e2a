#include "executor/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace weir::executor {
namespace {

using ::testing::HasSubstr;

/// Nodes named by letters, with one float output each unless told otherwise.
class Nodes {
 public:
  GraphDef graph;

  int Add(const std::string& op, std::vector<Edge> inputs, int segment = -1,
          std::size_t outputs = 1) {
    Node node;
    node.name = std::string(1, static_cast<char>('a' + graph.nodes.size()));
    node.op = op;
    node.inputs = std::move(inputs);
    node.outputs.resize(outputs, {at::kFloat, std::nullopt, true});
    if (segment >= 0) node.attrs["segment"] = static_cast<std::int64_t>(segment);
    graph.nodes.push_back(std::move(node));
    return static_cast<int>(graph.nodes.size()) - 1;
  }

  int AddBackward(std::vector<Edge> inputs, int ys, int xs, int segment) {
    const int node = Add("Backward", std::move(inputs), segment, static_cast<std::size_t>(xs));
    graph.nodes.back().attrs["num_ys"] = static_cast<std::int64_t>(ys);
    graph.nodes.back().attrs["num_xs"] = static_cast<std::int64_t>(xs);
    return node;
  }
};

Edge Out(int node, int output = 0) {
  return {node, output};
}
Edge Control(int node) {
  return {node, Edge::kControl};
}

std::vector<std::uint32_t> InputsOf(const Layout& layout, int node) {
  const Range range = layout.nodes[static_cast<std::size_t>(node)].inputs;
  return {layout.inputs.begin() + range.begin, layout.inputs.begin() + range.end};
}

TEST(LayoutTest, OutsideSegmentsEverySlotIsAnOutput) {
  Nodes nodes;
  const int a = nodes.Add("Const", {});
  const int b = nodes.Add("Aten", {Out(a), Out(a)}, -1, 2);
  nodes.Add("Fetch", {Out(b, 1), Control(a)}, -1, 0);
  const Layout layout = *MakeLayout(nodes.graph);
  EXPECT_EQ(layout.references, (std::vector<std::int32_t>{2, 0, 1}));
  EXPECT_EQ(layout.pending, (std::vector<std::int32_t>{0, 2, 2}));
  EXPECT_EQ(InputsOf(layout, b), (std::vector<std::uint32_t>{0, 0}));
  EXPECT_EQ(layout.first_leaf, 3u);
  EXPECT_FALSE(layout.nodes[1].recorded);
}

TEST(LayoutTest, ASegmentHasLiveValuesInsideAndSharedLeavesAtItsBorder) {
  Nodes nodes;
  const int w = nodes.Add("Recv", {});
  const int data = nodes.Add("Recv", {});
  const int first = nodes.Add("Aten", {Out(data), Out(w)}, 0);
  const int second = nodes.Add("Aten", {Out(first), Out(w)}, 0);
  const int seed = nodes.Add("Aten", {Out(second)});
  const int backward = nodes.AddBackward({Out(second), Out(seed), Out(w)}, 1, 1, 0);
  nodes.Add("Send", {Out(backward)}, -1, 0);
  const Layout layout = *MakeLayout(nodes.graph);

  EXPECT_TRUE(layout.nodes[static_cast<std::size_t>(first)].recorded);
  const std::uint32_t live_first = layout.outputs[2].live;
  const std::uint32_t live_second = layout.outputs[3].live;
  ASSERT_NE(live_first, kNone);
  ASSERT_NE(live_second, kNone);
  ASSERT_EQ(layout.leaf_sources, (std::vector<std::uint32_t>{0}));
  const std::uint32_t leaf = layout.first_leaf;
  EXPECT_EQ(InputsOf(layout, first), (std::vector<std::uint32_t>{1, leaf}));
  EXPECT_EQ(InputsOf(layout, second), (std::vector<std::uint32_t>{live_first, leaf}));
  EXPECT_EQ(InputsOf(layout, seed), (std::vector<std::uint32_t>{3})) << "detached";
  EXPECT_EQ(InputsOf(layout, backward), (std::vector<std::uint32_t>{live_second, 4, leaf}));
  EXPECT_EQ(layout.backwards, (std::vector<std::int32_t>{1}));
  EXPECT_EQ(layout.references[0], 3) << "the leaf's source is there for whoever makes it";
  EXPECT_EQ(layout.references[2], 0) << "nobody outside the segment reads it";
}

TEST(LayoutTest, WhatOneSegmentGivesAnotherIsALeafThere) {
  Nodes nodes;
  const int w = nodes.Add("Read", {}, 0);
  const int first = nodes.Add("Aten", {Out(w)}, 0);
  const int second = nodes.Add("Aten", {Out(first)}, 4);
  const int backward = nodes.AddBackward({Out(second), Out(second), Out(first)}, 1, 1, 4);
  nodes.AddBackward({Out(first), Out(backward), Out(w)}, 1, 1, 0);
  const Layout layout = *MakeLayout(nodes.graph);
  ASSERT_EQ(layout.leaf_sources.size(), 2u);
  EXPECT_EQ(layout.leaf_sources[0], 0u) << "a Read is never inside, whatever it is marked with";
  EXPECT_EQ(layout.leaf_sources[1], 1u);
  EXPECT_EQ(InputsOf(layout, second), (std::vector<std::uint32_t>{layout.first_leaf + 1}));
  EXPECT_NE(layout.outputs[1].live, kNone) << "the y of its own segment's backward";
  EXPECT_EQ(layout.backwards, (std::vector<std::int32_t>{1, 1}));
}

TEST(LayoutTest, RejectsGraphsThatAreNone) {
  {
    Nodes nodes;
    nodes.Add("Identity", {Out(0)});
    EXPECT_THAT(std::string(MakeLayout(nodes.graph).status().message()), HasSubstr("'a'"));
  }
  {
    Nodes nodes;
    nodes.Add("Const", {});
    nodes.Add("Identity", {Out(0, 1)});
    EXPECT_TRUE(absl::IsInvalidArgument(MakeLayout(nodes.graph).status()));
    nodes.graph.nodes[1].inputs = {Out(-1)};
    EXPECT_TRUE(absl::IsInvalidArgument(MakeLayout(nodes.graph).status()));
    nodes.graph.nodes[1].inputs = {Control(0), Out(0)};
    EXPECT_TRUE(absl::IsInvalidArgument(MakeLayout(nodes.graph).status()));
  }
  for (const auto& [ys, xs] : {std::pair(-1, 5), {2, 1}, {1, 2}, {1000000000, 1}}) {
    Nodes nodes;
    nodes.Add("Const", {});
    nodes.AddBackward({Out(0), Out(0), Out(0)}, 1, 1, 0);
    nodes.graph.nodes.back().attrs["num_ys"] = static_cast<std::int64_t>(ys);
    nodes.graph.nodes.back().attrs["num_xs"] = static_cast<std::int64_t>(xs);
    EXPECT_TRUE(absl::IsInvalidArgument(MakeLayout(nodes.graph).status())) << ys << " " << xs;
  }
}

}  // namespace
}  // namespace weir::executor
