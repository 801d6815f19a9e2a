#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/node_util.h"
#include "graph/op_registry.h"
#include "graph/passes.h"
#include "graph/passes_testing.h"
#include "graph/stages.h"

namespace weir::graph {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const TestGraph::Dims kScalar;

std::int64_t SegmentOf(const GraphDef& graph, const std::string& name) {
  return AttrOr<std::int64_t>(NodeNamed(graph, name), "segment", -1);
}

// Node that gives input `position` of `name`.
const Node& Source(const GraphDef& graph, const std::string& name, std::size_t position) {
  return NodeAt(graph, NodeNamed(graph, name).inputs[position].node);
}

void Expand(TestGraph& graph) {
  const absl::Status status = ExpandGradients(graph.def);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(CountOp(graph.def, "Gradients"), 0);
  EXPECT_TRUE(TopologicalOrder(graph.def).ok());
}

// Consumes output `output` of a Gradients node.
Edge Use(TestGraph& graph, const std::string& name, int gradients, int output,
         const std::string& device) {
  return graph.Aten(name, {{.node = gradients, .output = output}}, device);
}

TEST(StagesTest, CountDeviceChangesOnTheLongestWay) {
  TestGraph g;
  const Edge w = g.Read(g.Variable("w", {2}, kPs0));
  const Edge a = g.Aten("a", {w, g.Const("c", kWorker0)}, kWorker0);
  const Edge b = g.Aten("b", {a}, kWorker1);
  const Edge late = g.Aten("late", {g.Const("d", kWorker0)}, kWorker0);
  g.After(late.node, b.node);
  const auto stages = ComputeStages(g.def, TopologicalOrder(g.def).value(), DeviceNumbers(g.def));
  std::map<std::string, int> by_name;
  for (std::size_t n = 0; n < stages.size(); ++n) by_name[g.def.nodes[n].name] = stages[n];
  const std::map<std::string, int> expected = {{"w", 0}, {"w/read", 0}, {"c", 0},   {"a", 1},
                                               {"b", 2}, {"d", 0},      {"late", 3}};
  EXPECT_EQ(by_name, expected);
}

TEST(ExpandGradientsTest, OneDeviceIsOneSegment) {
  TestGraph g;
  const Edge w = g.Variable("w", {2, 2}, kWorker0);
  const Edge read = g.Read(w);
  const Edge hidden = g.Aten("hidden", {g.Placeholder("x", {2, 2}, kWorker0), read}, kWorker0);
  const Edge loss = g.Aten("loss", {hidden}, kWorker0, kScalar);
  g.Aten("accuracy", {hidden}, kWorker0);
  g.Apply(w, {.node = g.Gradients("gradients", loss, {read}), .output = 0});
  Expand(g);
  EXPECT_THAT(InputNames(g.def, "gradients/backward"),
              ElementsAre("loss", "gradients/ones_like", "w/read"));
  EXPECT_THAT(InputNames(g.def, "w/apply"), ElementsAre("w", "gradients/backward"));
  EXPECT_EQ(CountOp(g.def, "SumGradients"), 0);
  EXPECT_EQ(SegmentOf(g.def, "gradients/backward"), 0);
  EXPECT_EQ(SegmentOf(g.def, "hidden"), 0);
  EXPECT_EQ(SegmentOf(g.def, "loss"), 0);
  // Not on the way of a gradient: not recorded.
  EXPECT_EQ(SegmentOf(g.def, "accuracy"), -1);
  EXPECT_EQ(SegmentOf(g.def, "w/read"), -1);
  EXPECT_EQ(SegmentOf(g.def, "gradients/ones_like"), -1);

  const Node& backward = NodeNamed(g.def, "gradients/backward");
  EXPECT_EQ(AttrOr<std::int64_t>(backward, "num_ys", 0), 1);
  EXPECT_EQ(AttrOr<std::int64_t>(backward, "num_xs", 0), 1);
  ASSERT_EQ(backward.outputs.size(), 1U);
  EXPECT_EQ(backward.outputs[0].dtype, at::kFloat);
  EXPECT_EQ(backward.outputs[0].shape, NodeNamed(g.def, "w/read").outputs[0].shape);
  EXPECT_FALSE(backward.outputs[0].differentiable);
}

TEST(ExpandGradientsTest, ParametersOnTwoServersAreLeavesOfOneSegment) {
  TestGraph g;
  const Edge w = g.Variable("w", {2, 2}, kPs0);
  const Edge v = g.Variable("v", {2, 2}, kPs1);
  const Edge hidden = g.Aten("hidden", {g.Placeholder("x", {2, 2}, kWorker0), g.Read(w)}, kWorker0);
  const Edge loss = g.Aten("loss", {hidden, g.Read(v)}, kWorker0, kScalar);
  const Edge reads[] = {g.def.nodes[loss.node].inputs[1], g.def.nodes[hidden.node].inputs[1]};
  const int gradients = g.Gradients("gradients", loss, {reads[0], reads[1]});
  g.Apply(v, {.node = gradients, .output = 0});
  g.Apply(w, {.node = gradients, .output = 1});
  Expand(g);
  EXPECT_THAT(InputNames(g.def, "gradients/backward"),
              ElementsAre("loss", "gradients/ones_like", "w/read", "v/read"));
  EXPECT_THAT(InputNames(g.def, "w/apply"), ElementsAre("w", "gradients/backward"));
  EXPECT_THAT(InputNames(g.def, "v/apply"), ElementsAre("v", "gradients/backward:1"));
  EXPECT_EQ(NodeNamed(g.def, "gradients/backward").device, kWorker0);
}

// Layers on two workers: the gradient of what goes over is the first one's gradient from outside.
TEST(ExpandGradientsTest, SegmentsHandGradientsBack) {
  TestGraph g;
  const Edge w = g.Read(g.Variable("w", {2}, kWorker0));
  const Edge v = g.Read(g.Variable("v", {2}, kWorker1));
  const Edge first = g.Aten("first", {w}, kWorker0);
  const Edge loss = g.Aten("loss", {first, v}, kWorker1, kScalar);
  const int gradients = g.Gradients("gradients", loss, {w, v});
  Use(g, "dw", gradients, 0, kWorker0);
  Use(g, "dv", gradients, 1, kWorker1);
  Expand(g);
  EXPECT_THAT(NamesOfOp(g.def, "Backward"),
              ElementsAre("gradients/backward", "gradients/backward_1"));
  EXPECT_THAT(InputNames(g.def, "gradients/backward"),
              ElementsAre("loss", "gradients/ones_like", "first", "v/read"));
  EXPECT_THAT(InputNames(g.def, "gradients/backward_1"),
              ElementsAre("first", "gradients/backward", "w/read"));
  EXPECT_THAT(InputNames(g.def, "dw"), ElementsAre("gradients/backward_1"));
  EXPECT_THAT(InputNames(g.def, "dv"), ElementsAre("gradients/backward:1"));
  EXPECT_EQ(SegmentOf(g.def, "first"), 0);
  EXPECT_EQ(SegmentOf(g.def, "loss"), 1);
  EXPECT_EQ(SegmentOf(g.def, "gradients/backward"), 1);
  EXPECT_EQ(SegmentOf(g.def, "gradients/backward_1"), 0);
}

// A weight of worker 0 used there before and after a visit to worker 1.
TEST(ExpandGradientsTest, OneWeightInTwoSegmentsOfItsDevice) {
  TestGraph g;
  const Edge w = g.Read(g.Variable("w", {2}, kWorker0));
  const Edge a = g.Aten("a", {w}, kWorker0);
  const Edge b = g.Aten("b", {a}, kWorker1);
  const Edge loss = g.Aten("loss", {b, w}, kWorker0, kScalar);
  Use(g, "dw", g.Gradients("gradients", loss, {w}), 0, kWorker0);
  Expand(g);
  EXPECT_EQ(SegmentOf(g.def, "a"), 0);
  EXPECT_EQ(SegmentOf(g.def, "b"), 1);
  EXPECT_EQ(SegmentOf(g.def, "loss"), 2);
  // Latest stage first: that of the loss made the first Backward node.
  EXPECT_THAT(InputNames(g.def, "dw"), ElementsAre("gradients/sum/w/read"));
  EXPECT_THAT(InputNames(g.def, "gradients/sum/w/read"),
              ElementsAre("gradients/backward:1", "gradients/backward_2"));
  EXPECT_EQ(NodeNamed(g.def, "gradients/sum/w/read").device, kWorker0);
}

// A weight on a ps used by both workers, twice by worker 0: each worker sends one gradient.
TEST(ExpandGradientsTest, SumsOnTheProducingDeviceThenAtTheVariable) {
  TestGraph g;
  const Edge w = g.Variable("w", {2}, kPs0);
  const Edge read = g.Read(w);
  const Edge a = g.Aten("a", {read}, kWorker0);
  const Edge b = g.Aten("b", {a, read}, kWorker1);
  const Edge loss = g.Aten("loss", {b, read}, kWorker0, kScalar);
  g.Apply(w, {.node = g.Gradients("gradients", loss, {read}), .output = 0});
  Expand(g);
  const GraphDef& def = g.def;
  // Made in this order: the sum of worker 0, then the sum at the variable.
  EXPECT_EQ(NodeNamed(def, "gradients/sum/w/read").device, kWorker0);
  EXPECT_EQ(NodeNamed(def, "gradients/sum/w/read_1").device, kPs0);
  EXPECT_THAT(InputNames(def, "w/apply"), ElementsAre("w", "gradients/sum/w/read_1"));
  // Worker 0 made the latest contribution.
  EXPECT_EQ(Source(def, "gradients/sum/w/read_1", 0).name, "gradients/sum/w/read");
  EXPECT_EQ(Source(def, "gradients/sum/w/read_1", 1).device, kWorker1);
  EXPECT_EQ(SegmentOf(def, Source(def, "gradients/sum/w/read", 0).name), SegmentOf(def, "loss"));
  EXPECT_EQ(SegmentOf(def, Source(def, "gradients/sum/w/read", 1).name), SegmentOf(def, "a"));
}

TEST(ExpandGradientsTest, ContributionsOfOneStageAreSummedInOrderOfDevices) {
  TestGraph g;
  const Edge w = g.Read(g.Variable("w", {2}, kPs0));
  const Edge b = g.Aten("b", {w}, kWorker1);
  const Edge a = g.Aten("a", {w}, kWorker0);
  const Edge loss = g.Aten("loss", {b, a}, kPs1, kScalar);
  Use(g, "dw", g.Gradients("gradients", loss, {w}), 0, kPs0);
  Expand(g);
  EXPECT_EQ(Source(g.def, "gradients/sum/w/read", 0).device, kWorker0);
  EXPECT_EQ(Source(g.def, "gradients/sum/w/read", 1).device, kWorker1);
}

TEST(ExpandGradientsTest, WhatTheLossDoesNotDependOnIsAbsent) {
  TestGraph g;
  const Edge w = g.Read(g.Variable("w", {3}, kPs0));
  const Edge v = g.Read(g.Variable("v", {2}, kPs1));
  const Edge hidden = g.Aten("hidden", {w}, kWorker0);
  // The chain from v breaks at an operator without a gradient.
  const Edge best = g.Aten("best", {v}, kWorker0, {2}, "aten::argmax");
  g.at(best.node).outputs[0] = {.dtype = at::kLong, .shape = kScalar, .differentiable = false};
  const Edge loss = g.Aten("loss", {hidden, best}, kWorker0, kScalar);
  const int gradients = g.Gradients("gradients", loss, {w, v});
  Use(g, "dw", gradients, 0, kPs0);
  Use(g, "dv", gradients, 1, kPs1);
  Expand(g);
  EXPECT_THAT(InputNames(g.def, "dw"), ElementsAre("gradients/backward"));
  EXPECT_THAT(InputNames(g.def, "dv"), ElementsAre("gradients/sum/v/read"));
  EXPECT_THAT(InputNames(g.def, "gradients/sum/v/read"), IsEmpty());
  EXPECT_EQ(NodeNamed(g.def, "gradients/sum/v/read").device, kPs1);
  EXPECT_EQ(SegmentOf(g.def, "best"), -1);
}

TEST(ExpandGradientsTest, ALossThatDependsOnNothingNeedsNoBackward) {
  TestGraph g;
  const Edge w = g.Read(g.Variable("w", {2}, kPs0));
  const Edge loss = g.Aten("loss", {g.Const("c", kWorker0)}, kWorker0, kScalar);
  Use(g, "dw", g.Gradients("gradients", loss, {w}), 0, kPs0);
  Expand(g);
  EXPECT_EQ(CountOp(g.def, "Backward"), 0);
  EXPECT_THAT(InputNames(g.def, "dw"), ElementsAre("gradients/sum/w/read"));
  EXPECT_EQ(SegmentOf(g.def, "loss"), -1);
}

TEST(ExpandGradientsTest, TheGradientOfTheLossItselfIsOne) {
  TestGraph g;
  const Edge w = g.Read(g.Variable("w", {2}, kWorker0));
  const Edge loss = g.Aten("loss", {w}, kWorker0, kScalar);
  const int gradients = g.Gradients("gradients", loss, {loss, w});
  Use(g, "dloss", gradients, 0, kWorker0);
  Use(g, "dw", gradients, 1, kWorker0);
  Expand(g);
  EXPECT_THAT(InputNames(g.def, "dloss"), ElementsAre("gradients/ones_like"));
  EXPECT_THAT(InputNames(g.def, "dw"), ElementsAre("gradients/backward"));
  EXPECT_THAT(InputNames(g.def, "gradients/ones_like"), ElementsAre("loss"));
}

// An intermediate is an input of the autograd call where it is consumed in its own segment, and an
// output of it where others consume it too.
TEST(ExpandGradientsTest, GradientsOfIntermediates) {
  TestGraph g;
  const Edge w = g.Read(g.Variable("w", {2}, kWorker0));
  const Edge inner = g.Aten("inner", {w}, kWorker0);
  const Edge both = g.Aten("both", {inner}, kWorker0);
  const Edge outer = g.Aten("outer", {both}, kWorker0);
  const Edge loss = g.Aten("loss", {both, outer}, kWorker1, kScalar);
  const int gradients = g.Gradients("gradients", loss, {inner, both, outer});
  for (int i = 0; i < 3; ++i) Use(g, "d" + std::to_string(i), gradients, i, kWorker0);
  Expand(g);
  EXPECT_THAT(InputNames(g.def, "gradients/backward"),
              ElementsAre("loss", "gradients/ones_like", "both", "outer"));
  EXPECT_THAT(
      InputNames(g.def, "gradients/backward_1"),
      ElementsAre("both", "outer", "gradients/backward", "gradients/backward:1", "inner", "both"));
  EXPECT_THAT(InputNames(g.def, "d0"), ElementsAre("gradients/backward_1"));
  EXPECT_THAT(InputNames(g.def, "d1"), ElementsAre("gradients/backward_1:1"));
  EXPECT_THAT(InputNames(g.def, "d2"), ElementsAre("gradients/backward:1"));
  // Nobody wants w: `inner` is where the gradients end, and its own operator is not recorded.
  EXPECT_EQ(SegmentOf(g.def, "inner"), -1);
  EXPECT_EQ(SegmentOf(g.def, "both"), 0);
}

TEST(ExpandGradientsTest, IdentityAndFunctionAreDifferentiated) {
  TestGraph g;
  const Edge w = g.Read(g.Variable("w", {2}, kWorker0));
  const Edge same = g.Identity("same", w, kWorker0);  // of a leaf, so not marked differentiable
  const Edge called = g.Function("called", {same}, kWorker0);
  const Edge loss = g.Aten("loss", {called}, kWorker0, kScalar);
  Use(g, "dw", g.Gradients("gradients", loss, {w}), 0, kWorker0);
  Expand(g);
  EXPECT_THAT(InputNames(g.def, "dw"), ElementsAre("gradients/backward"));
  EXPECT_EQ(SegmentOf(g.def, "same"), 0);
  EXPECT_EQ(SegmentOf(g.def, "called"), 0);
}

TEST(ExpandGradientsTest, OnlyConsumedGradientsAreComputed) {
  TestGraph g;
  const Edge w = g.Read(g.Variable("w", {2}, kPs0));
  const Edge v = g.Read(g.Variable("v", {2}, kPs1));
  const Edge loss = g.Aten("loss", {w, v}, kWorker0, kScalar);
  Use(g, "dv", g.Gradients("gradients", loss, {w, v}), 1, kPs1);
  Expand(g);
  EXPECT_THAT(InputNames(g.def, "gradients/backward"),
              ElementsAre("loss", "gradients/ones_like", "v/read"));
}

TEST(ExpandGradientsTest, RunningAGradientsNodeComputesAll) {
  TestGraph g;
  const Edge w = g.Read(g.Variable("w", {2}, kPs0));
  const Edge loss = g.Aten("loss", {w}, kWorker0, kScalar);
  g.Gradients("gradients", loss, {w, w});
  Expand(g);
  EXPECT_THAT(InputNames(g.def, "gradients/backward"),
              ElementsAre("loss", "gradients/ones_like", "w/read"));
}

TEST(ExpandGradientsTest, LossesShareSegmentsButNotBackwardNodes) {
  TestGraph g;
  const Edge w = g.Read(g.Variable("w", {2}, kPs0));
  const Edge trunk = g.Aten("trunk", {w}, kWorker0);
  const Edge first = g.Aten("first", {trunk}, kWorker0, kScalar);
  const Edge second = g.Aten("second", {trunk}, kWorker1, kScalar);
  Use(g, "d1", g.Gradients("g1", first, {w}), 0, kPs0);
  Use(g, "d2", g.Gradients("g2", second, {w}), 0, kPs0);
  Expand(g);
  EXPECT_THAT(NamesOfOp(g.def, "Backward"),
              UnorderedElementsAre("g1/backward", "g2/backward", "g2/backward_1"));
  EXPECT_EQ(SegmentOf(g.def, "trunk"), 0);
  EXPECT_EQ(SegmentOf(g.def, "first"), 0);
  EXPECT_EQ(SegmentOf(g.def, "second"), 1);
  EXPECT_EQ(SegmentOf(g.def, "g1/backward"), 0);
  EXPECT_EQ(SegmentOf(g.def, "g2/backward"), 1);
  EXPECT_EQ(SegmentOf(g.def, "g2/backward_1"), 0);
}

TEST(ExpandGradientsTest, GradientsOfOneLossShareTheirBackwardNode) {
  TestGraph g;
  const Edge w = g.Read(g.Variable("w", {2}, kPs0));
  const Edge v = g.Read(g.Variable("v", {2}, kPs1));
  const Edge loss = g.Aten("loss", {w, v}, kWorker0, kScalar);
  Use(g, "dw", g.Gradients("g1", loss, {w}), 0, kPs0);
  Use(g, "dv", g.Gradients("g2", loss, {v, w}), 0, kPs1);
  Expand(g);
  EXPECT_THAT(NamesOfOp(g.def, "Backward"), ElementsAre("g1/backward"));
  EXPECT_THAT(InputNames(g.def, "dw"), ElementsAre("g1/backward"));
  EXPECT_THAT(InputNames(g.def, "dv"), ElementsAre("g1/backward:1"));
}

// Alternating training: the second backward part waits for the first one's update.
TEST(ExpandGradientsTest, ControlEdgesAreKept) {
  TestGraph g;
  const Edge w = g.Variable("w", {2}, kWorker0);
  const Edge read = g.Read(w);
  const Edge loss = g.Aten("loss", {read}, kWorker0, kScalar);
  const int first = g.Gradients("g1", loss, {read});
  const int apply = g.Apply(w, {.node = first, .output = 0});
  const int second = g.Gradients("g2", loss, {read});
  g.After(second, apply);
  g.Group("group", {second, first}, kWorker0);
  Expand(g);
  EXPECT_THAT(InputNames(g.def, "g2/ones_like"), ElementsAre("loss", "^w/apply"));
  EXPECT_THAT(InputNames(g.def, "group"), ElementsAre("^g2/backward", "^g1/backward"));
}

TEST(ExpandGradientsTest, WaitingForAbsentGradientsIsWaitingForWhatTheyWaitFor) {
  TestGraph g;
  const Edge w = g.Read(g.Variable("w", {2}, kWorker0));
  const Edge loss = g.Aten("loss", {}, kWorker0, kScalar);
  const Edge before = g.Aten("before", {}, kWorker0);
  const int first = g.Gradients("g1", loss, {w});
  g.After(first, before.node);
  const int second = g.Gradients("g2", loss, {w});
  g.After(second, first);
  g.Group("group", {second}, kWorker0);
  Expand(g);
  EXPECT_THAT(InputNames(g.def, "group"),
              UnorderedElementsAre("^g2/sum/w/read", "^g1/sum/w/read", "^before"));
}

TEST(ExpandGradientsTest, GradientsOfGradientsAreUnimplemented) {
  TestGraph g;
  const Edge w = g.Read(g.Variable("w", {2}, kWorker0));
  const Edge loss = g.Aten("loss", {w}, kWorker0, kScalar);
  const Edge penalty = g.Aten(
      "penalty", {Use(g, "norm", g.Gradients("inner", loss, {w}), 0, kWorker0)}, kWorker0, kScalar);
  g.Gradients("outer", penalty, {w});
  const absl::Status status = ExpandGradients(g.def);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("'outer'"), HasSubstr("'penalty'"), HasSubstr("'inner'")));
}

TEST(ExpandGradientsTest, BadLossesAndTensorsAreExplained) {
  const auto message = [](const OutputInfo& loss_info, const OutputInfo& x_info) {
    TestGraph g;
    const Edge x = g.Const("x", kWorker0);
    g.at(x.node).outputs[0] = x_info;
    const Edge loss = g.Aten("loss", {x}, kWorker0);
    g.at(loss.node).outputs[0] = loss_info;
    g.Gradients("gradients", loss, {x});
    const absl::Status status = ExpandGradients(g.def);
    EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  const OutputInfo scalar{.dtype = at::kFloat, .shape = kScalar, .differentiable = true};
  const OutputInfo vector{.dtype = at::kFloat, .shape = {{2}}, .differentiable = true};
  const OutputInfo unknown{.dtype = at::kFloat, .shape = std::nullopt, .differentiable = true};
  const OutputInfo integer{.dtype = at::kLong, .shape = kScalar, .differentiable = false};
  EXPECT_THAT(message(scalar, vector), IsEmpty());
  EXPECT_THAT(message(unknown, vector), IsEmpty());
  EXPECT_THAT(message(vector, vector), HasSubstr("'loss' has more than one element"));
  EXPECT_THAT(message(integer, vector), HasSubstr("'loss' is int64, not a floating point tensor"));
  EXPECT_THAT(message(scalar, integer),
              HasSubstr("'x' is int64; only floating point tensors have gradients"));
}

// An operator with two outputs of which one has no gradient, though both are floating point.
TEST(ExpandGradientsTest, AnOutputThatIsNotDifferentiatedHasNoGradient) {
  TestGraph g;
  const Edge w = g.Read(g.Variable("w", {2}, kWorker0));
  const Edge norm = g.Aten("norm", {w}, kWorker0);
  g.at(norm.node).outputs.push_back(
      {.dtype = at::kFloat, .shape = TestGraph::Dims{2}, .differentiable = false});
  const Edge statistics{.node = norm.node, .output = 1};
  const Edge loss = g.Aten("loss", {norm, statistics}, kWorker0, kScalar);
  g.Gradients("gradients", loss, {w, statistics});
  const absl::Status status = ExpandGradients(g.def);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'norm:1'"));
}

}  // namespace
}  // namespace weir::graph
