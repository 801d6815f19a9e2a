#include "weir/graph.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/initializer_attrs.h"
#include "graph/op_registry.h"
#include "weir/ops.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Errors(const Graph& graph) {
  return std::string(graph.status().message());
}

std::string DeviceOf(const Graph& graph, const Output& output) {
  return graph.node(output.node()).device;
}

Output Scalar(Graph& graph, const std::string& name = "x") {
  return graph.Placeholder(name, at::kFloat, {});
}

TEST(GraphNames, AreMadeUniqueBySuffixes) {
  Graph graph;
  const Output x = Scalar(graph);
  EXPECT_EQ(graph.Identity(x, "y").name(), "y");
  EXPECT_EQ(graph.Identity(x, "y").name(), "y_1");
  EXPECT_EQ(graph.Identity(x, "y_2").name(), "y_2");
  EXPECT_EQ(graph.Identity(x, "y").name(), "y_3");
  EXPECT_EQ(graph.FindNode("y_1"), 2);
  EXPECT_EQ(graph.FindNode("z"), -1);
  EXPECT_TRUE(graph.status().ok());
}

TEST(GraphNames, OutputsAfterTheFirstHaveAColon) {
  Graph graph;
  const Output x = graph.Placeholder("x", at::kFloat, {4});
  const std::vector<Output> halves = ops::split(x, 2);
  ASSERT_EQ(halves.size(), 2);
  EXPECT_EQ(halves[0].name(), "split");
  EXPECT_EQ(halves[1].name(), "split:1");
}

TEST(GraphNames, GrammarIsThatOfTheOriginal) {
  for (const char* good : {"a", "A/b_1.c-d\\e", ".x", "9"}) {
    Graph graph;
    Scalar(graph, good);
    EXPECT_TRUE(graph.status().ok()) << good;
  }
  for (const char* bad : {"_a", "/a", "-a", "a b", "a:0", "^a", "\xc3\xa4"}) {
    Graph graph;
    Scalar(graph, bad);
    EXPECT_THAT(Errors(graph), HasSubstr(bad));
  }
}

TEST(GraphVariable, IsAHandleAndOneReadBesideIt) {
  Graph graph;
  const Variable w = graph.Variable("w", Uniform({2, 3}, -1, 1, at::kDouble), {.container = "c"});
  EXPECT_TRUE(graph.status().ok());
  EXPECT_EQ(w.name(), "w");
  EXPECT_EQ(w.read().name(), "w/read");
  EXPECT_EQ(graph.node(w.read().node()).colocation, "w");
  EXPECT_EQ(w.handle().dtype(), at::ScalarType::Undefined);
  EXPECT_EQ(w.read().dtype(), at::kDouble);
  EXPECT_THAT(*w.read().shape(), ElementsAre(2, 3));
  const Node& node = graph.node(w.handle().node());
  EXPECT_EQ(graph::AttrOr<std::string>(node, "container", ""), "c");
  EXPECT_TRUE(graph::AttrOr<bool>(node, "trainable", false));
  const auto initializer = graph::InitializerFromAttrs(node);
  ASSERT_TRUE(initializer.ok()) << initializer.status();
  EXPECT_EQ(initializer->kind, Initializer::Kind::kUniform);
  EXPECT_EQ(initializer->a, -1);
  EXPECT_EQ(initializer->b, 1);
  EXPECT_THAT(initializer->shape, ElementsAre(2, 3));
}

TEST(GraphVariable, OnlyFloatingPointOnesAreTrainable) {
  Graph graph;
  const Variable w = graph.Variable("w", Zeros({2}));
  graph.Variable("frozen", Zeros({2}), {.trainable = false});
  graph.Variable("count", Zeros({}, at::kLong));
  ASSERT_EQ(graph.trainable_variables().size(), 1);
  EXPECT_EQ(graph.trainable_variables()[0].handle().node(), w.handle().node());
}

TEST(GraphVariable, NamesAreState) {
  Graph graph;
  Scalar(graph, "x");
  graph.Variable("w", Zeros({}));
  graph.Variable("w", Zeros({}));
  graph.Variable("x", Zeros({}));
  graph.Variable("_w", Zeros({}));
  EXPECT_THAT(Errors(graph),
              AllOf(HasSubstr("node 'w': a variable needs the name for itself, and a Variable"),
                    HasSubstr("node 'x': a variable needs the name for itself, and a Placeholder"),
                    HasSubstr("node '_w': a variable's name may not start with '_'")));
}

TEST(GraphVariable, ContradictionsAreErrors) {
  Graph graph;
  graph.Variable("a", Zeros({-1}));
  graph.Variable("b", Zeros({}), {.consistent_reads = true, .read_in_place = true});
  graph.Variable("c", Zeros({}), {.container = "_c"});
  graph.Variable("d", FromTensor(at::Tensor()));
  EXPECT_THAT(Errors(graph), AllOf(HasSubstr("node 'a'"), HasSubstr("node 'b'"),
                                   HasSubstr("node 'c'"), HasSubstr("node 'd'")));
}

TEST(GraphVariable, UpdatesMustFit) {
  Graph graph;
  const Variable w = graph.Variable("w", Zeros({2, 3}));
  graph.Assign(w, graph.Placeholder("good", at::kFloat, {-1, 3}));
  EXPECT_TRUE(graph.status().ok()) << graph.status();
  graph.Assign(w, graph.Placeholder("bad", at::kFloat, {3, 2}), "assign_shape");
  graph.AssignAdd(w, graph.Placeholder("worse", at::kDouble, {2, 3}), "add_dtype");
  EXPECT_THAT(Errors(graph), AllOf(HasSubstr("node 'assign_shape': variable 'w' is float32 {2, 3}, "
                                             "the tensor for it float32 {3, 2}"),
                                   HasSubstr("node 'add_dtype'"), HasSubstr("float64 {2, 3}")));
}

TEST(GraphVariable, AHandleIsNoTensor) {
  Graph graph;
  const Variable w = graph.Variable("w", Zeros({2}));
  ops::relu(w.handle());
  graph.Assign(Variable(w.read(), w.read()), w.read(), "assign");
  EXPECT_THAT(Errors(graph), AllOf(HasSubstr("node 'relu': takes a tensor, and 'w' is a variable's "
                                             "handle: take its read()"),
                                   HasSubstr("node 'assign': 'w/read' is no variable")));
}

// TensorFlow 1.14, python/framework/ops_test.py, DeviceTest: inner scopes win field by field.
TEST(GraphDevices, NestedScopesMerge) {
  Graph graph;
  DeviceScope outer(graph, "/job:worker/replica:2");
  EXPECT_EQ(DeviceOf(graph, Scalar(graph)), "/job:worker/replica:2");
  {
    DeviceScope inner(graph, "/job:worker/replica:3/task:0");
    EXPECT_EQ(DeviceOf(graph, Scalar(graph)), "/job:worker/replica:3/task:0");
  }
  {
    DeviceScope inner(graph, "/cpu:1");
    EXPECT_EQ(DeviceOf(graph, Scalar(graph)), "/job:worker/replica:2/device:CPU:1");
    DeviceScope innermost(graph, "/device:GPU:0");
    EXPECT_EQ(DeviceOf(graph, Scalar(graph)), "/job:worker/replica:2/device:GPU:0");
  }
  EXPECT_EQ(DeviceOf(graph, Scalar(graph)), "/job:worker/replica:2");
}

TEST(GraphDevices, AnEmptyScopeHidesTheOnesAroundIt) {
  Graph graph;
  DeviceScope outer(graph, "/job:ps");
  DeviceScope reset(graph, "");
  EXPECT_EQ(DeviceOf(graph, Scalar(graph)), "");
  DeviceScope inner(graph, "/task:1");
  EXPECT_EQ(DeviceOf(graph, Scalar(graph)), "/task:1");
}

TEST(GraphDevices, FunctionsRunFromInnermostToOutermost) {
  Graph graph;
  std::vector<std::string> seen;
  DeviceScope outer(graph, [&](const Node& node) {
    seen.push_back("outer " + node.device);
    return std::string("/job:worker/task:1");
  });
  DeviceScope inner(graph, [&](const Node& node) {
    seen.push_back("inner " + node.device);
    return std::string("/task:7");
  });
  Node node{.name = "x", .op = "Group", .device = "/device:CPU:2"};
  const Operation op = graph.AddNode(node);
  EXPECT_THAT(seen, ElementsAre("inner /device:CPU:2", "outer /task:7/device:CPU:2"));
  EXPECT_EQ(graph.node(op.node()).device, "/job:worker/task:7/device:CPU:2");
}

TEST(GraphDevices, FunctionsSeeTheWholeNode) {
  Graph graph;
  DeviceScope scope(graph, [](const Node& node) {
    const auto shape = graph::AttrOr<std::vector<std::int64_t>>(node, "shape", {});
    return node.op == "Variable" ? "/job:ps/task:" + std::to_string(shape.at(0))
                                 : std::string("/job:worker");
  });
  const Variable w = graph.Variable("w", Zeros({5}));
  EXPECT_EQ(DeviceOf(graph, w.handle()), "/job:ps/task:5");
  EXPECT_EQ(DeviceOf(graph, ops::relu(w)), "/job:worker");
}

TEST(GraphDevices, WhatTouchesAVariableFollowsIt) {
  Graph graph;
  Variable w;
  {
    DeviceScope scope(graph, "/job:ps/task:1");
    w = graph.Variable("w", Zeros({2}));
  }
  DeviceScope scope(graph, "/job:worker");
  EXPECT_EQ(DeviceOf(graph, w.read()), "");
  const Operation assign = graph.Assign(w, graph.Const(at::zeros({2})));
  EXPECT_EQ(graph.node(assign.node()).device, "");
  EXPECT_EQ(DeviceOf(graph, graph.IsInitialized(w)), "");
}

TEST(GraphDevices, BadStringsNameTheOpAndTheString) {  // C4-07
  for (const char* bad : {"/jobs:ps/task:0", "/job:ps/task:x", "job:ps", "/job:ps/task:-1"}) {
    Graph graph;
    DeviceScope scope(graph, bad);
    const Output x = Scalar(graph, "first");
    const Output y = ops::relu(x);
    EXPECT_THAT(Errors(graph),
                AllOf(HasSubstr("node 'first'"), HasSubstr(bad), Not(HasSubstr("relu"))))
        << "one scope is one mistake";
    EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(y.dtype(), at::kFloat) << "shapes are inferred all the same";
  }
  for (const char* good : {"/job:ps/task:1/cpu:0", "/job:ps/task:1/device:CPU:0"}) {
    Graph graph;
    DeviceScope scope(graph, good);
    EXPECT_EQ(DeviceOf(graph, Scalar(graph)), "/job:ps/task:1/device:CPU:0");
    EXPECT_TRUE(graph.status().ok());
  }
}

TEST(GraphDevices, ColocationReplacesWhatScopesAskFor) {
  Graph graph;
  const Output a = Scalar(graph, "a");
  DeviceScope scope(graph, "/job:worker");
  const Output b = graph.Identity(a, "b");
  graph.Colocate(b.op(), a.op());
  EXPECT_EQ(graph.node(b.node()).colocation, "a");
  EXPECT_EQ(DeviceOf(graph, b), "");
  graph.Colocate(b.op(), Operation());
  EXPECT_THAT(Errors(graph), HasSubstr("colocation of 'b'"));
}

std::vector<int> ControlInputs(const Graph& graph, const Operation& op) {
  std::vector<int> inputs;
  for (const Edge& edge : graph.node(op.node()).inputs) {
    if (edge.is_control()) inputs.push_back(edge.node);
  }
  return inputs;
}

TEST(GraphControl, ScopesAddUp) {
  Graph graph;
  const Output a = Scalar(graph, "a");
  const Output b = Scalar(graph, "b");
  ControlDependencies outer(graph, {a.op()});
  const Output c = graph.Identity(a, "c");
  EXPECT_THAT(ControlInputs(graph, c.op()), ElementsAre(a.node()));
  ControlDependencies inner(graph, {b.op(), a.op()});
  const Output d = graph.Identity(a, "d");
  EXPECT_THAT(ControlInputs(graph, d.op()), ElementsAre(a.node(), b.node()));
  EXPECT_EQ(graph::NumDataInputs(graph.node(d.node())), 1);
}

TEST(GraphControl, VariablesAndFeedsWaitForNothing) {
  Graph graph;
  const Output a = Scalar(graph, "a");
  ControlDependencies scope(graph, {a.op()});
  const Variable w = graph.Variable("w", Zeros({}));
  EXPECT_THAT(ControlInputs(graph, w.handle().op()), ElementsAre());
  EXPECT_THAT(ControlInputs(graph, w.read().op()), ElementsAre());
  EXPECT_THAT(ControlInputs(graph, Scalar(graph, "b").op()), ElementsAre());
  EXPECT_THAT(ControlInputs(graph, graph.Assign(w, a)), ElementsAre(a.node()));
}

TEST(GraphControl, GroupsAndEdges) {
  Graph graph;
  const Output a = Scalar(graph, "a");
  const Output b = Scalar(graph, "b");
  const Operation group = graph.Group({a.op(), b.op(), a.op()});
  EXPECT_THAT(ControlInputs(graph, group), ElementsAre(a.node(), b.node()));
  const Operation empty = graph.Group({});
  graph.AddControlEdge(a.op(), empty);
  graph.AddControlEdge(a.op(), empty);
  EXPECT_THAT(ControlInputs(graph, empty), ElementsAre(a.node()));
  graph.AddControlEdge(a.op(), a.op());
  graph.AddControlEdge(Operation(), a.op());
  EXPECT_THAT(Errors(graph), AllOf(HasSubstr("'a' cannot wait for itself"),
                                   HasSubstr("control edge from '' to 'a'")));
}

TEST(GraphErrors, CollectWithoutStoppingTheExpression) {
  Graph graph;
  const Output x = graph.Placeholder("x", at::kFloat, {5, 3});
  const Output w = graph.Placeholder("w", at::kFloat, {4, 2});
  const Output bad = ops::matmul(x, w);
  const Output after = ops::relu(bad + x);  // not to blame
  EXPECT_EQ(after.dtype(), at::ScalarType::Undefined);
  ops::reshape(x, {4, 4});
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Errors(graph),
              AllOf(HasSubstr("the graph has 2 errors:"),
                    HasSubstr("node 'matmul' (aten::matmul): mat1 and mat2 shapes cannot be "
                              "multiplied (5x3 and 4x2)"),
                    HasSubstr("node 'reshape'"), Not(HasSubstr("add")), Not(HasSubstr("relu")),
                    Not(HasSubstr("Exception raised"))));
}

TEST(GraphErrors, OneErrorStandsAlone) {
  Graph graph;
  graph.AddError(absl::NotFoundError("this"));
  EXPECT_EQ(graph.status(), absl::InvalidArgumentError("this"));
}

TEST(GraphErrors, TensorsOfOtherGraphsAreRefused) {
  Graph one;
  Graph two;
  const Output x = Scalar(one, "x1");
  const Output y = Scalar(two, "x2");
  EXPECT_EQ((x + y).graph(), &one);
  EXPECT_THAT(Errors(one), HasSubstr("node 'add': input 'x2' belongs to another graph"));
  EXPECT_TRUE(two.status().ok());
  one.Group({y.op()}, "group");
  EXPECT_THAT(Errors(one), HasSubstr("node 'group'"));
}

TEST(GraphErrors, NoTensorIsRefused) {
  Graph graph;
  graph.Identity(Output(), "identity");
  graph.Identity(Output(&graph, 77, 0), "far");
  graph.Const(at::Tensor(), "const");
  EXPECT_THAT(Errors(graph), AllOf(HasSubstr("node 'identity'"), HasSubstr("node 'far'"),
                                   HasSubstr("node 'const'")));
  EXPECT_FALSE(ops::relu(Output()).valid());
}

TEST(GraphErrors, UnknownOperatorsAreExplained) {
  Graph graph;
  const Output x = Scalar(graph);
  EXPECT_EQ(graph.Aten("relu", "", {x}).size(), 1);
  graph.Aten("aten::no_such", "", {x});
  graph.Aten("aten::add", "tensor", {x, x});
  EXPECT_THAT(Errors(graph), AllOf(HasSubstr("did you mean 'aten::relu'?"),
                                   HasSubstr("unknown operator 'aten::no_such'"),
                                   HasSubstr("it has 'Scalar', "), HasSubstr("'Tensor'")));
}

TEST(GraphAten, ValuesBecomeConstants) {
  Graph graph;
  const Output x = graph.Placeholder("x", at::kFloat, {2});
  const Output y = graph.Aten("aten::add", "Tensor", {x, at::ones({2})}, "y")[0];
  EXPECT_TRUE(graph.status().ok()) << graph.status();
  const int constant = graph.FindNode("y/const");
  ASSERT_GE(constant, 0);
  EXPECT_EQ(graph.node(constant).op, "Const");
  EXPECT_EQ(graph.node(y.node()).inputs[1].node, constant);
}

TEST(GraphAten, ListsMayHaveHolesAndGeneratorsAreSkipped) {
  Graph graph;
  const Output x = graph.Placeholder("x", at::kFloat, {3, 4});
  const Output columns = graph.Placeholder("columns", at::kLong, {5});
  const Output picked =
      graph.Aten("aten::index", "Tensor", {x, std::vector<Output>{Output(), columns}})[0];
  EXPECT_THAT(*picked.shape(), ElementsAre(3, 5));
  EXPECT_EQ(graph.node(picked.node()).inputs.size(), 2);
  const Output drawn = graph.Aten("aten::rand_like", "generator", {x, std::monostate()})[0];
  EXPECT_THAT(*drawn.shape(), ElementsAre(3, 4));
  EXPECT_TRUE(graph.status().ok()) << graph.status();
  graph.Aten("aten::cat", "", {std::vector<Output>{x, Output()}}, "holes");
  graph.Aten("aten::cat", "", {x}, "no_list");
  graph.Aten("aten::relu", "", {std::vector<Output>{x}}, "list");
  graph.Aten("aten::relu", "", {Output()}, "none");
  graph.Aten("aten::relu", "", {x, 3}, "many");
  graph.Aten("aten::softmax", "int", {x, x}, "tensor");
  EXPECT_THAT(Errors(graph),
              AllOf(HasSubstr("node 'holes': argument 'tensors' takes Tensor[], not a list with "
                              "absent tensors"),
                    HasSubstr("node 'no_list': argument 'tensors' takes Tensor[], not a tensor"),
                    HasSubstr("node 'list': argument 'self' takes Tensor, not a list of tensors"),
                    HasSubstr("node 'none': argument 'self' takes Tensor, not None"),
                    HasSubstr("node 'many': 2 arguments are given, 1 are taken"),
                    HasSubstr("node 'tensor': argument 'dim' takes int, not a tensor"),
                    HasSubstr("(schema: aten::relu(Tensor self) -> Tensor)")));
}

TEST(GraphAten, NamesComeFromTheOperator) {
  Graph graph;
  const Output x = graph.Placeholder("x", at::kFloat, {2});
  EXPECT_EQ(graph.Aten("aten::relu", "", {x})[0].name(), "relu");
  EXPECT_EQ(graph.Aten("aten::_softmax", "", {x, 0, false})[0].name(), "softmax");
}

TEST(GraphConst, IsACopy) {
  Graph graph;
  const at::Tensor value = at::zeros({3});
  const Output constant = graph.Const(value);
  value.fill_(1);
  const auto held = graph::AttrOr<at::Tensor>(graph.node(constant.node()), "value", {});
  EXPECT_EQ(held.sum().item<float>(), 0);
}

TEST(GraphFunction, IsFoundByItsHandle) {
  Graph graph;
  const Output x = Scalar(graph);
  const auto identity = [](const std::vector<at::Tensor>& in) { return in; };
  const OutputInfo info{at::kFloat, std::vector<std::int64_t>{}, true};
  const Output a = graph.Function(identity, {x}, {info})[0];
  const Output b = graph.Function(identity, {x}, {info})[0];
  EXPECT_EQ(a.dtype(), at::kFloat);
  EXPECT_EQ(graph.functions().size(), 2);
  const auto handle = [&](const Output& output) {
    return graph::AttrOr<std::int64_t>(graph.node(output.node()), "handle", -1);
  };
  EXPECT_NE(handle(a), handle(b));
  EXPECT_TRUE(graph.functions().contains(handle(a)));
  EXPECT_TRUE(graph.status().ok());
  graph.Function(nullptr, {x}, {info}, "empty");
  EXPECT_THAT(Errors(graph), HasSubstr("node 'empty'"));
}

TEST(GraphGradients, LookLikeWhatTheyAreOf) {
  Graph graph;
  const Variable w = graph.Variable("w", Zeros({3, 2}));
  const Output x = graph.Placeholder("x", at::kFloat, {-1, 3});
  const Output loss = ops::mean(ops::matmul(x, w));
  const std::vector<Output> gradients = graph.Gradients(loss, {w, x});
  ASSERT_EQ(gradients.size(), 2);
  EXPECT_THAT(*gradients[0].shape(), ElementsAre(3, 2));
  EXPECT_THAT(*gradients[1].shape(), ElementsAre(-1, 3));
  EXPECT_EQ(gradients[0].dtype(), at::kFloat);
  EXPECT_TRUE(graph.status().ok()) << graph.status();
}

TEST(GraphGradients, WantAScalarLossThatHasGradients) {
  Graph graph;
  const Output x = graph.Placeholder("x", at::kFloat, {2});
  const Output n = graph.Placeholder("n", at::kLong, {});
  EXPECT_EQ(graph.Gradients(x, {x}, "vector").size(), 1);
  graph.Gradients(ops::argmax(x, 0), {x}, "argmax_loss");
  graph.Gradients(ops::sum(x), {n}, "int");
  graph.Gradients(ops::sum(x), {}, "none");
  EXPECT_THAT(Errors(graph),
              AllOf(HasSubstr("node 'vector': the loss must be a scalar, and 'x' is {2}"),
                    HasSubstr("node 'argmax_loss': no gradient flows back through 'argmax'"),
                    HasSubstr("node 'int': 'n' is int64"), HasSubstr("node 'none'")));
}

TEST(GraphAddNode, ChecksWhatLayersAboveMake) {
  Graph graph;
  const Variable w = graph.Variable("w", Zeros({2}));
  const Variable step = graph.Variable("step", Zeros({}, at::kLong));
  const Edge handle{w.handle().node(), 0};
  graph.AddNode({.name = "strange", .op = "Strange"});
  graph.AddNode({.name = "far", .op = "Identity", .inputs = {{99, 0}}});
  graph.AddNode({.name = "ticket", .op = "Ticket", .inputs = {handle}, .attrs = {{"limit", 1}}});
  EXPECT_THAT(Errors(graph),
              AllOf(HasSubstr("node 'strange': unknown op 'Strange'"), HasSubstr("node 'far'"),
                    HasSubstr("node 'ticket': steps are counted by an int64")));
  const Operation ticket = graph.AddNode({.name = "t",
                                          .op = "Ticket",
                                          .inputs = {{step.handle().node(), 0}},
                                          .attrs = {{"limit", 1}}});
  ASSERT_EQ(graph.node(ticket.node()).outputs.size(), 1);
  EXPECT_EQ(graph.node(ticket.node()).outputs[0].dtype, at::kLong);
}

}  // namespace
}  // namespace weir
