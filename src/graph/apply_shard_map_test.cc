// What becomes of a graph whose variables are cut into slices, node by node. That the values are
// those of whole variables is shown over a cluster, in runtime/embedding_test.cc.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "graph/op_registry.h"
#include "graph/passes.h"
#include "graph/passes_testing.h"
#include "graph/shard_map.h"
#include "weir/embedding.h"
#include "weir/ops.h"

namespace weir::graph {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<GraphDef> Sliced(const GraphDef& graph) {
  const absl::StatusOr<ShardMap> map = ShardMapOf(graph);
  if (!map.ok()) return map.status();
  return ApplyShardMap(graph, *map);
}

GraphDef SlicedOrDie(const Graph& graph) {
  EXPECT_TRUE(graph.status().ok()) << graph.status();
  auto sliced = Sliced(graph.def());
  EXPECT_TRUE(sliced.ok()) << sliced.status();
  return sliced.ok() ? *std::move(sliced) : GraphDef();
}

std::string MessageOf(const GraphDef& graph) {
  const auto sliced = Sliced(graph);
  EXPECT_EQ(sliced.status().code(), absl::StatusCode::kInvalidArgument) << sliced.status();
  return std::string(sliced.status().message());
}

Variable Table(Graph& graph, RowLayout layout = RowLayout::kDiv, const std::string& name = "t",
               const Initializer& initializer = Zeros({10, 4})) {
  return graph.Variable(name, initializer,
                        {.partitioner = FixedSizePartitioner(3), .layout = layout});
}

/// The update of `variable` that an optimizer's strategy adds.
Operation Apply(Graph& graph, const Variable& variable, Output gradient) {
  return graph.AddNode(
      {.name = variable.name() + "/apply",
       .op = "Apply",
       .inputs = {{variable.handle().node(), 0}, {gradient.node(), gradient.index()}},
       .attrs = {{"rule", "GradientDescent"}}});
}

/// The update of `average` by `variable`, after `before`.
Operation Average(Graph& graph, const Variable& average, const Variable& variable,
                  Operation before) {
  return graph.AddNode({.name = "average",
                        .op = "Average",
                        .inputs = {{average.handle().node(), 0},
                                   {variable.handle().node(), 0},
                                   {before.node(), Edge::kControl}},
                        .attrs = {{"rule", "MovingAverage"}}});
}

/// Both layouts deal ten rows as 4, 3, 3.
class ApplyShardMapTest : public ::testing::TestWithParam<RowLayout> {};

INSTANTIATE_TEST_SUITE_P(Layouts, ApplyShardMapTest,
                         ::testing::Values(RowLayout::kDiv, RowLayout::kMod));

TEST_P(ApplyShardMapTest, ASlicedVariableIsAVariableForEachSlice) {
  Graph graph;
  Table(graph, GetParam());
  const GraphDef sliced = SlicedOrDie(graph);
  EXPECT_THAT(NamesOfOp(sliced, "Variable"), ElementsAre("t/part_0", "t/part_1", "t/part_2"));
  std::vector<std::int64_t> rows;
  for (const char* name : {"t/part_0", "t/part_1", "t/part_2"})
    rows.push_back(GetAttr<std::vector<std::int64_t>>(NodeNamed(sliced, name), "shape")->front());
  EXPECT_THAT(rows, ElementsAre(4, 3, 3));
}

TEST_P(ApplyShardMapTest, ReadsKeepTheirControlEdges) {
  Graph graph;
  const Variable table = Table(graph, GetParam());
  const Variable other = graph.Variable("other", Zeros({}));
  const Operation first = graph.Assign(other, graph.Const(at::ones({})), "first");
  graph.AddControlEdge(first, table.read().op());
  {
    const ControlDependencies after(graph, {first});
    graph.IsInitialized(table, "made");
  }
  const GraphDef sliced = SlicedOrDie(graph);
  // With mod the ids of all rows are what waits.
  const std::vector<std::string> waiting =
      GetParam() == RowLayout::kMod
          ? std::vector<std::string>{"t/read/ids"}
          : std::vector<std::string>{"t/part_0/read", "t/part_1/read", "t/part_2/read"};
  for (const std::string& name : waiting)
    EXPECT_THAT(InputNames(sliced, name), Contains("^first")) << name;
  for (const std::string& name : NamesOfOp(sliced, "IsInitialized"))
    EXPECT_THAT(InputNames(sliced, name), Contains("^first")) << name;
}

TEST_P(ApplyShardMapTest, WhoWaitsForAnUpdateWaitsForThatOfEachSlice) {
  Graph graph;
  const Variable table = Table(graph, GetParam());
  const Operation assign = graph.Assign(table, graph.Const(at::zeros({10, 4})), "assign");
  graph.Group({assign}, "after");
  const GraphDef sliced = SlicedOrDie(graph);
  const std::vector<std::string> all = {"^t/part_0/assign", "^t/part_1/assign", "^t/part_2/assign"};
  EXPECT_EQ(InputNames(sliced, "after"), all);
  EXPECT_EQ(InputNames(sliced, "assign"), all) << "the target of that name";
}

TEST_P(ApplyShardMapTest, ValuesAreJoinedAndDealtOutWhereTheyAreUsed) {
  constexpr char kWorker[] = "/job:worker/task:1";
  Graph graph;
  const Variable table = Table(graph, GetParam());
  Output loss;
  {
    const DeviceScope scope(graph, kWorker);
    loss = ops::sum(table * table);
  }
  Apply(graph, table, graph.Gradients(loss, {table})[0]);
  const GraphDef sliced = SlicedOrDie(graph);
  EXPECT_EQ(NodeNamed(sliced, "t/read").device, kWorker);
  EXPECT_EQ(NodeNamed(sliced, NamesOfOp(sliced, "Split").at(0)).device, kWorker);
}

TEST(ApplyShardMap, RowsSumWhereTheyWereLookedUp) {
  Graph graph;
  const Variable table = Table(graph);
  const Output ids = graph.Const(at::arange(3, at::kLong));
  Output rows;
  {
    const DeviceScope scope(graph, "/job:worker/task:1");
    rows = EmbeddingLookup(table, ids);
  }
  graph.ScatterAdd(table, ids, rows);
  const GraphDef sliced = SlicedOrDie(graph);
  EXPECT_EQ(NodeNamed(sliced, NamesOfOp(sliced, "SumRows").at(0)).device, "/job:worker/task:1");
}

TEST(ApplyShardMap, UsersThatDisagreeLeaveThePlaceOpen) {
  Graph graph;
  const Variable table = Table(graph);
  for (const char* device : {"/job:worker/task:0", "/job:worker/task:1"}) {
    const DeviceScope scope(graph, device);
    ops::sum(table.read());
  }
  EXPECT_EQ(NodeNamed(SlicedOrDie(graph), "t/read").device, "");
}

TEST(ApplyShardMap, SlicesOfAFirstValueMakeItUp) {
  const at::Tensor value = at::arange(40, at::kFloat).reshape({10, 4});
  for (const RowLayout layout : {RowLayout::kDiv, RowLayout::kMod}) {
    Graph graph;
    Table(graph, layout, "t", FromTensor(value));
    const GraphDef sliced = SlicedOrDie(graph);
    const auto part = GetAttr<at::Tensor>(NodeNamed(sliced, "t/part_1"), "initializer_value");
    ASSERT_TRUE(part.ok()) << part.status();
    const at::Tensor rows =
        layout == RowLayout::kDiv ? at::arange(4, 7, at::kLong) : at::arange(1, 10, 3, at::kLong);
    EXPECT_TRUE(at::equal(*part, value.index_select(0, rows)));
  }
}

TEST(ApplyShardMap, AnAverageIsKeptSliceBySlice) {
  Graph graph;
  const Variable table = Table(graph, RowLayout::kMod, "t", Normal({10, 4}, 1));
  const Variable average = Table(graph, RowLayout::kMod, "a", Normal({10, 4}, 1));
  graph.node(average.handle().node()).attrs["drawn_as"] = "t";
  Average(graph, average, table, Apply(graph, table, graph.Const(at::zeros({10, 4}))));
  const GraphDef sliced = SlicedOrDie(graph);
  EXPECT_THAT(NamesOfOp(sliced, "Average"),
              ElementsAre("a/part_0/average", "a/part_1/average", "a/part_2/average"));
  EXPECT_THAT(
      InputNames(sliced, "a/part_1/average"),
      ElementsAre("a/part_1", "t/part_1", "^t/part_0/apply", "^t/part_1/apply", "^t/part_2/apply"));
  EXPECT_EQ(AttrOr<std::string>(NodeNamed(sliced, "a/part_1"), "drawn_as", ""), "t/part_1");
}

TEST(ApplyShardMap, TheNameOfASliceMustBeFree) {
  Graph graph;
  Table(graph);
  graph.Variable("t/part_1", Zeros({}));
  EXPECT_THAT(MessageOf(graph.def()), HasSubstr("the graph has another 't/part_1'"));
}

TEST(ApplyShardMap, ACounterCannotBeCut) {
  Graph graph;
  const Variable table = Table(graph, RowLayout::kDiv, "t", Zeros({10}, at::kLong));
  graph.AddNode({.name = "count", .op = "CompleteStep", .inputs = {{table.handle().node(), 0}}});
  GraphDef def = graph.def();
  EXPECT_NE(MessageOf(def), "");
}

TEST(ApplyShardMap, SlicesHaveDevicesOfTheirOwn) {
  Graph graph;
  const Variable other = graph.Variable("other", Zeros({}));
  const Variable table = Table(graph);
  graph.Colocate(table.handle().op(), other.handle().op());
  EXPECT_THAT(MessageOf(graph.def()), HasSubstr("variable 't' is colocated with 'other'"));
}

TEST(ApplyShardMap, WhatSharesTheDeviceOfASlicedVariableSharesThatOfItsFirst) {
  Graph graph;
  const Variable table = Table(graph);
  const Output x = graph.Const(at::ones({}), "x");
  graph.Colocate(x.op(), table.handle().op());
  EXPECT_EQ(NodeNamed(SlicedOrDie(graph), "x").colocation, "t/part_0");
}

// ---- What only a graph from elsewhere can hold.

Node& NodeOf(GraphDef& graph, const std::string& name) {
  return graph.nodes[static_cast<std::size_t>(IndexNamed(graph, name))];
}

TEST(ApplyShardMap, SlicesThatDoNotMakeUpTheirVariableAreRefused) {
  Graph graph;
  Table(graph);
  const std::vector<std::pair<std::string, AttrValue>> wrong = {
      {"sizes", std::vector<std::int64_t>{4, 3, 4}},
      {"sizes", std::vector<std::int64_t>{4, -1, 7}},
      {"sizes", std::vector<std::int64_t>{}},
      {"axis", std::int64_t{2}},
      {"axis", std::int64_t{-1}},
      {"layout", std::string("zigzag")},
      {"slice_devices", std::vector<std::string>{"", ""}},
      {"shape", std::vector<std::int64_t>{}},
      {"initializer_value", at::zeros({3})},
  };
  for (const auto& [name, value] : wrong) {
    GraphDef def = graph.def();
    Node& node = NodeOf(def, "t");
    node.attrs[name] = value;
    if (name == "initializer_value") {
      node.attrs["initializer"] = static_cast<std::int64_t>(Initializer::Kind::kValue);
    }
    EXPECT_NE(MessageOf(def), "") << name;
  }
}

TEST(ApplyShardMap, ALookupInAScalarIsRefused) {
  Graph graph;
  Table(graph);
  EmbeddingLookup(graph.Variable("s", Zeros({3, 2})), graph.Const(at::zeros({1}, at::kLong)));
  GraphDef def = graph.def();
  NodeOf(def, "s").attrs["shape"] = std::vector<std::int64_t>{};
  EXPECT_THAT(MessageOf(def), HasSubstr("'s'"));
}

TEST(ApplyShardMap, ASparseUpdateWithoutIdsIsRefused) {
  Graph graph;
  const Variable table = Table(graph);
  Apply(graph, table, graph.Const(at::zeros({10, 4})));
  GraphDef def = graph.def();
  NodeOf(def, "t/apply").attrs["sparse"] = true;
  EXPECT_THAT(MessageOf(def), HasSubstr("takes 3 tensors"));
}

TEST(ApplyShardMap, AnAverageThatIsCutInAnotherWayIsRefused) {
  Graph graph;
  const Variable table = Table(graph);
  const Variable whole = graph.Variable("whole", Zeros({10, 4}));
  Average(graph, whole, table, graph.Group({}));
  EXPECT_THAT(MessageOf(graph.def()), HasSubstr("'t' and its average 'whole' are not cut alike"));
}

}  // namespace
}  // namespace weir::graph
