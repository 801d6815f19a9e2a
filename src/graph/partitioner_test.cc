#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/node_util.h"
#include "graph/op_registry.h"
#include "graph/passes.h"
#include "graph/passes_testing.h"

namespace weir::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kA[] = "/job:a/replica:0/task:0/device:CPU:0";
constexpr char kB[] = "/job:a/replica:0/task:0/device:CPU:1";

PartitionedGraph Partition(const TestGraph& graph) {
  absl::StatusOr<PartitionedGraph> result = PartitionGraph(graph.def);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  for (const PartitionDef& partition : result->partitions) {
    EXPECT_TRUE(IsOrdered(partition.graph)) << partition.device;
    EXPECT_TRUE(Validate(partition.graph, /*allow_internal=*/true).ok())
        << Validate(partition.graph, true);
  }
  return *std::move(result);
}

// Each node as "name(inputs)".
std::vector<std::string> Nodes(const PartitionedGraph& graph, const std::string& device) {
  std::vector<std::string> nodes;
  for (const PartitionDef& partition : graph.partitions) {
    if (partition.device != device) continue;
    for (const Node& node : partition.graph.nodes) {
      std::string text = node.name + "(";
      for (const Edge& input : node.inputs) text += TensorName(partition.graph, input) + ",";
      if (text.back() == ',') text.pop_back();
      nodes.push_back(text + ")");
    }
  }
  return nodes;
}

// A1 on device A, B1 on device B; the graphs of graph_partition_test.cc of the original.
struct Abc {
  TestGraph g;
  Edge a1 = g.Aten("A1", {}, kA);
  Edge b1 = g.Aten("B1", {}, kB);
};

TEST(PartitionGraphTest, SingleDevice) {
  TestGraph g;
  const Edge a1 = g.Aten("A1", {}, kA);
  g.Aten("A2", {a1, a1}, kA);
  const PartitionedGraph plan = Partition(g);
  ASSERT_EQ(plan.partitions.size(), 1U);
  EXPECT_THAT(Nodes(plan, kA), ElementsAre("A1()", "A2(A1,A1)"));
  EXPECT_TRUE(plan.edges.empty());
}

TEST(PartitionGraphTest, WhoANodeWasPlacedWithNeedNotBeInTheStep) {
  TestGraph g;
  g.Aten("A1", {}, kA);
  g.node("A1").colocation = "pruned";
  EXPECT_EQ(NodeNamed(Partition(g).partitions[0].graph, "A1").colocation, "");
}

TEST(PartitionGraphTest, CrossDeviceData) {
  Abc t;
  t.g.Aten("B2", {t.a1, t.b1}, kB);
  const PartitionedGraph plan = Partition(t.g);
  ASSERT_EQ(plan.partitions.size(), 2U);
  EXPECT_THAT(Nodes(plan, kA), ElementsAre("A1()", "A1_S1(A1)"));
  EXPECT_THAT(Nodes(plan, kB), ElementsAre("B1()", "A1_R1()", "B2(A1_R1,B1)"));

  const CrossEdge expected{.id = 1,
                           .tensor = "A1",
                           .from = kA,
                           .to = kB,
                           .control = false,
                           .dtype = at::kFloat,
                           .shape = TestGraph::Dims{2, 2}};
  EXPECT_THAT(plan.edges, ElementsAre(expected));
  const Node& send = NodeNamed(plan.partitions[0].graph, "A1_S1");
  EXPECT_EQ(send.device, kA);
  EXPECT_EQ(AttrOr<std::int64_t>(send, "edge", 0), 1);
  EXPECT_EQ(AttrOr<std::string>(send, "to", ""), kB);
  EXPECT_FALSE(AttrOr<bool>(send, "control", true));
  const Node& recv = NodeNamed(plan.partitions[1].graph, "A1_R1");
  EXPECT_EQ(recv.device, kB);
  EXPECT_EQ(AttrOr<std::int64_t>(recv, "edge", 0), 1);
  EXPECT_EQ(AttrOr<std::string>(recv, "from", ""), kA);
  EXPECT_FALSE(AttrOr<bool>(recv, "control", true));
  ASSERT_EQ(recv.outputs.size(), 1U);
  EXPECT_EQ(recv.outputs[0].dtype, at::kFloat);
  EXPECT_EQ(recv.outputs[0].shape, (TestGraph::Dims{2, 2}));
}

TEST(PartitionGraphTest, CrossDeviceControl) {
  Abc t;
  t.g.After(t.g.Aten("B2", {t.b1, t.b1}, kB).node, t.a1.node);
  const PartitionedGraph plan = Partition(t.g);
  EXPECT_THAT(Nodes(plan, kA), ElementsAre("A1()", "A1_S1(^A1)"));
  EXPECT_THAT(Nodes(plan, kB), ElementsAre("B1()", "A1_R1()", "B2(B1,B1,^A1_R1)"));
  ASSERT_EQ(plan.edges.size(), 1U);
  EXPECT_TRUE(plan.edges[0].control);
  EXPECT_EQ(plan.edges[0].tensor, "^A1");
  EXPECT_TRUE(NodeNamed(plan.partitions[1].graph, "A1_R1").outputs.empty());
  EXPECT_TRUE(AttrOr<bool>(NodeNamed(plan.partitions[0].graph, "A1_S1"), "control", false));
}

TEST(PartitionGraphTest, CrossDeviceDataMultiUse) {
  Abc t;
  t.g.Aten("B2", {t.a1, t.b1}, kB);
  t.g.Aten("B3", {t.a1, t.a1}, kB);
  const PartitionedGraph plan = Partition(t.g);
  EXPECT_THAT(Nodes(plan, kA), ElementsAre("A1()", "A1_S1(A1)"));
  EXPECT_THAT(Nodes(plan, kB), ElementsAre("B1()", "A1_R1()", "B2(A1_R1,B1)", "B3(A1_R1,A1_R1)"));
}

TEST(PartitionGraphTest, CrossDeviceControlMultiUse) {
  Abc t;
  t.g.After(t.g.Aten("B2", {t.b1, t.b1}, kB).node, t.a1.node);
  t.g.After(t.g.Aten("B3", {}, kB).node, t.a1.node);
  const PartitionedGraph plan = Partition(t.g);
  EXPECT_THAT(Nodes(plan, kA), ElementsAre("A1()", "A1_S1(^A1)"));
  EXPECT_THAT(Nodes(plan, kB), ElementsAre("B1()", "A1_R1()", "B2(B1,B1,^A1_R1)", "B3(^A1_R1)"));
}

// The original sends both; its test says that the control edge could ride on the data.
TEST(PartitionGraphTest, CrossDeviceDataControl) {
  Abc t;
  t.g.Aten("B2", {t.a1, t.b1}, kB);
  t.g.After(t.g.Aten("B3", {}, kB).node, t.a1.node);
  const PartitionedGraph plan = Partition(t.g);
  EXPECT_THAT(Nodes(plan, kA), ElementsAre("A1()", "A1_S1(A1)"));
  EXPECT_THAT(Nodes(plan, kB), ElementsAre("B1()", "A1_R1()", "B2(A1_R1,B1)", "B3(^A1_R1)"));
}

TEST(PartitionGraphTest, AnyValueOfTheNodeCarriesItsControlEdge) {
  Abc t;
  t.g.at(t.a1.node).outputs.push_back(t.g.at(t.a1.node).outputs[0]);
  t.g.After(t.g.Aten("B2", {}, kB).node, t.a1.node);
  t.g.Aten("B3", {{.node = t.a1.node, .output = 1}}, kB);
  const PartitionedGraph plan = Partition(t.g);
  EXPECT_THAT(Nodes(plan, kA), ElementsAre("A1()", "A1_S1(A1:1)"));
  EXPECT_THAT(Nodes(plan, kB), ElementsAre("B1()", "A1_R1()", "B2(^A1_R1)", "B3(A1_R1)"));
}

// Its first gradient leaves before the node has ended.
TEST(PartitionGraphTest, AGradientDoesNotCarryItsNodesControlEdge) {
  TestGraph g;
  const Edge y = g.Aten("y", {g.Const("x", kA)}, kA);
  const Edge seed = g.Aten("seed", {y}, kA);
  const Edge x{.node = 0, .output = 0};
  const int backward = g.Add("Backward", "back", {y, seed, x}, {g.at(y.node).outputs[0]}, kA);
  g.at(backward).attrs = {
      {"num_ys", std::int64_t{1}}, {"num_xs", std::int64_t{1}}, {"segment", std::int64_t{0}}};
  g.After(g.Aten("B1", {{.node = backward, .output = 0}}, kB).node, backward);
  const PartitionedGraph plan = Partition(g);
  EXPECT_THAT(Nodes(plan, kB), ElementsAre("back_R2()", "back_R1()", "B1(back_R2,^back_R1)"));
}

TEST(PartitionGraphTest, OnePairForEachDestination) {
  TestGraph g;
  const Edge read = g.Read(g.Variable("w", {2}, kPs0));
  g.Aten("a", {read}, kWorker0);
  g.Aten("b", {read}, kWorker1);
  g.Aten("c", {read}, kPs0);
  const PartitionedGraph plan = Partition(g);
  EXPECT_THAT(Nodes(plan, kPs0), ElementsAre("w()", "w/read(w)", "w/read_S1(w/read)",
                                             "w/read_S2(w/read)", "c(w/read)"));
  EXPECT_THAT(Nodes(plan, kWorker1), ElementsAre("w/read_R2()", "b(w/read_R2)"));
}

TEST(PartitionGraphTest, NamesStayUnique) {
  Abc t;
  t.g.Aten("A1_S1", {t.a1}, kA);
  t.g.Aten("B2", {t.a1}, kB);
  const PartitionedGraph plan = Partition(t.g);
  EXPECT_THAT(Nodes(plan, kA), ElementsAre("A1()", "A1_S1_1(A1)", "A1_S1(A1)"));
}

// The ticket comes to the worker with the parameters; the push echoes the version of its variable.
TEST(PartitionGraphTest, PushesNameTheParametersTheyWereComputedFrom) {
  TestGraph g;
  const Edge v = g.Variable("v", {2}, kPs0);
  const Edge w = g.Variable("w", {2}, kPs1);
  const Edge gradients[] = {g.Aten("dv", {g.Read(v)}, kWorker0),
                            g.Aten("dw", {g.Read(w)}, kWorker0)};
  const Edge other = g.Aten("dw2", {}, kWorker1);  // worker 1 has not read w
  const int sum =
      g.Add("SumGradients", "sum", {gradients[1], other}, g.at(other.node).outputs, kPs1);
  g.Apply(v, gradients[0]);
  g.Apply(w, {.node = sum, .output = 0});
  const PartitionedGraph plan = Partition(g);
  std::map<std::string, std::string> versions;
  for (const PartitionDef& partition : plan.partitions) {
    for (const Node& node : partition.graph.nodes) {
      if (node.op != "Send") continue;
      const std::string of = AttrOr<std::string>(node, "version_of", "");
      if (!of.empty()) {
        EXPECT_EQ(NodeNamed(partition.graph, of).op, "Recv");
      }
      versions[TensorName(partition.graph, node.inputs[0])] = of;
    }
  }
  const std::map<std::string, std::string> expected = {
      {"v/read", ""}, {"w/read", ""}, {"dv", "v/read_R1"}, {"dw", "w/read_R3"}, {"dw2", ""}};
  EXPECT_EQ(versions, expected);
}

TEST(PartitionGraphTest, CountsFeedsAndFetches) {
  TestGraph g;
  const OutputInfo value{.dtype = at::kFloat, .shape = std::nullopt, .differentiable = false};
  const int feed = g.Add("Feed", "feed", {}, {value}, kA);
  g.at(feed).attrs["index"] = std::int64_t{2};
  const int fetch = g.Add("Fetch", "fetch", {{.node = feed, .output = 0}}, {}, kA);
  g.at(fetch).attrs["index"] = std::int64_t{0};
  const PartitionedGraph plan = Partition(g);
  EXPECT_EQ(plan.num_feeds, 3);
  EXPECT_EQ(plan.num_fetches, 1);
}

TEST(PartitionGraphTest, HandlesDoNotCross) {
  TestGraph g;
  g.Read(g.Variable("w", {2}, kPs0), kWorker0);
  const absl::Status status = PartitionGraph(g.def).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'w' is no tensor and cannot go from"));
}

TEST(PartitionGraphTest, UnplacedNodesAreRefused) {
  TestGraph g;
  g.Aten("a", {}, "");
  const absl::Status status = PartitionGraph(g.def).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'a' has not been placed"));
}

TEST(PartitionGraphTest, CyclesAreRefused) {
  Abc t;
  const Edge b2 = t.g.Aten("B2", {t.a1}, kB);
  t.g.After(t.a1.node, b2.node);
  const absl::Status status = PartitionGraph(t.g.def).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("B2"));
}

TEST(PartitionGraphTest, AnEmptyGraphHasNoPartitions) {
  const PartitionedGraph plan = Partition(TestGraph());
  EXPECT_TRUE(plan.partitions.empty());
  EXPECT_TRUE(plan.edges.empty());
}

}  // namespace
}  // namespace weir::graph
