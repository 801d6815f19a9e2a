#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "graph/op_registry.h"
#include "graph/op_rules.h"
#include "weir/graph.h"
#include "weir/ops.h"

namespace weir::graph {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One node of every op that a user makes.
GraphDef Everything() {
  Graph graph(3);
  const Output x = graph.Placeholder("x", at::kFloat, {-1, 4});
  const weir::Variable w = graph.Variable("w", Zeros({4, 2}));
  const weir::Variable step = graph.Variable("global_step", Zeros({}, at::kLong));
  const Output y = graph.Identity(ops::matmul(x, w));
  const Output loss = ops::mean(y * graph.Const(at::zeros({2})));
  const Output gradient = graph.Gradients(loss, {w})[0];
  const Edge handle{w.handle().node(), 0};
  const Edge counter{step.handle().node(), 0};
  const Operation apply = graph.AddNode({.name = "apply",
                                         .op = "Apply",
                                         .inputs = {handle, {gradient.node(), 0}},
                                         .attrs = {{"rule", std::string("sgd")}}});
  const Operation ticket = graph.AddNode(
      {.name = "ticket", .op = "Ticket", .inputs = {counter}, .attrs = {{"limit", -1}}});
  graph.AddControlEdge(ticket, apply);
  const Operation done = graph.AddNode({.name = "done", .op = "CompleteStep", .inputs = {counter}});
  graph.Group({apply, done, graph.Assign(w, w.read()), graph.AssignAdd(w, w.read()),
               graph.IsInitialized(w).op()});
  graph.Function([](const std::vector<at::Tensor>& in) { return in; }, {y}, {{}});
  EXPECT_TRUE(graph.status().ok()) << graph.status();
  return graph.def();
}

std::string Violations(const GraphDef& graph, bool allow_internal = false) {
  return std::string(Validate(graph, allow_internal).message());
}

Node& Named(GraphDef& graph, const std::string& name) {
  for (Node& node : graph.nodes) {
    if (node.name == name) return node;
  }
  ADD_FAILURE() << name;
  return graph.nodes[0];
}

TEST(OpRegistry, EveryOpHasARule) {
  for (const char* op :
       {"Placeholder",   "Const",    "Variable",     "Read", "Assign",   "AssignAdd",
        "IsInitialized", "Identity", "Group",        "Aten", "Function", "Gradients",
        "Apply",         "Ticket",   "CompleteStep", "Feed", "Fetch",    "Send",
        "Recv",          "Backward", "SumGradients"}) {
    ASSERT_NE(FindOp(op), nullptr) << op;
    ASSERT_NE(FindRule(op), nullptr) << op;
    EXPECT_EQ(FindOp(op)->name, op);
  }
  EXPECT_EQ(FindOp("Strange"), nullptr);
  EXPECT_EQ(FindRule("Strange"), nullptr);
}

TEST(OpRegistry, AttributesAreTyped) {
  const Node node{.name = "n", .op = "Group", .attrs = {{"i", 3}, {"f", 0.5}}};
  EXPECT_EQ(*GetAttr<std::int64_t>(node, "i"), 3);
  EXPECT_EQ(AttrOr<std::int64_t>(node, "i", 7), 3);
  EXPECT_EQ(AttrOr<std::int64_t>(node, "f", 7), 7);
  EXPECT_EQ(AttrOr<std::int64_t>(node, "x", 7), 7);
  EXPECT_EQ(GetAttr<std::int64_t>(node, "f").status(),
            absl::InvalidArgumentError("node 'n' (Group): attribute 'f' is a float, not a int"));
  EXPECT_EQ(GetAttr<std::string>(node, "x").status(),
            absl::InvalidArgumentError("node 'n' (Group) has no attribute 'x'"));
}

TEST(OpRegistry, DataInputsComeBeforeControlInputs) {
  Node node;
  EXPECT_EQ(NumDataInputs(node), 0);
  node.inputs = {{0, 0}, {1, 2}, {2, Edge::kControl}};
  EXPECT_EQ(NumDataInputs(node), 2);
}

GraphDef Chain(const std::vector<std::vector<int>>& inputs) {
  GraphDef graph;
  for (std::size_t n = 0; n < inputs.size(); ++n) {
    Node node{.name = std::string(1, static_cast<char>('a' + n)), .op = "Group"};
    for (int input : inputs[n]) node.inputs.push_back({input, Edge::kControl});
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

TEST(TopologicalOrder, ComesFromInputsThenIndex) {
  EXPECT_THAT(*TopologicalOrder(Chain({{}, {}, {}})), ElementsAre(0, 1, 2));
  EXPECT_THAT(*TopologicalOrder(Chain({{2}, {}, {1}})), ElementsAre(1, 2, 0));
  EXPECT_THAT(*TopologicalOrder(Chain({{3, 3}, {}, {}, {2}})), ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(*TopologicalOrder(GraphDef()), ElementsAre());
}

TEST(TopologicalOrder, NamesACycleFromProducerToConsumer) {
  // a -> b -> c -> b, and d behind it.
  EXPECT_EQ(TopologicalOrder(Chain({{}, {0, 2}, {1}, {2}})).status(),
            absl::InvalidArgumentError("the graph has a cycle: c -> b -> c"));
  EXPECT_EQ(TopologicalOrder(Chain({{0}})).status(),
            absl::InvalidArgumentError("the graph has a cycle: a -> a"));
}

TEST(TopologicalOrder, RefusesEdgesFromNowhere) {
  EXPECT_FALSE(TopologicalOrder(Chain({{1}})).ok());
  EXPECT_FALSE(TopologicalOrder(Chain({{-1}})).ok());
}

TEST(Validate, AcceptsWhatGraphMakes) {
  EXPECT_EQ(Validate(Everything(), /*allow_internal=*/false), absl::OkStatus());
  EXPECT_EQ(Validate(Everything(), /*allow_internal=*/true), absl::OkStatus());
  EXPECT_EQ(Validate(GraphDef(), false), absl::OkStatus());
}

TEST(Validate, ListsEveryViolation) {
  GraphDef graph = Everything();
  Named(graph, "matmul").op = "Strange";
  Named(graph, "w/read").colocation = "nothing";
  Named(graph, "Identity").device = "/jobs:ps";
  Named(graph, "ticket").attrs.erase("limit");
  Named(graph, "x").attrs["dtype"] = 7;
  Named(graph, "Const").inputs.push_back({0, 0});
  Named(graph, "mean").inputs[0].output = 3;
  Named(graph, "Function").inputs = {{0, Edge::kControl}, {0, 0}};
  Named(graph, "Group").name = "x";
  EXPECT_THAT(
      Violations(graph),
      AllOf(HasSubstr("node \"matmul\": unknown op \"Strange\""),
            HasSubstr("node \"w/read\": is colocated with \"nothing\", which does not exist"),
            HasSubstr("node \"Identity\": device \"/jobs:ps\""),
            HasSubstr("node \"ticket\": has no attribute 'limit' (int)"),
            HasSubstr("node \"x\": attribute 'dtype' is a int, not a dtype"),
            HasSubstr("node \"Const\": Const takes 0 data inputs, has 1"),
            HasSubstr("node \"mean\": input 0 is output 3 of \"mul\", which has 1"),
            HasSubstr("node \"Function\": data input 1 comes after a control input")));
  EXPECT_THAT(Violations(graph), HasSubstr("two nodes have the name \"x\""));
}

TEST(Validate, HandlesGoToTheirOpsOnly) {
  GraphDef graph = Everything();
  const int w = Named(graph, "matmul").inputs[1].node - 1;
  ASSERT_EQ(graph.nodes[static_cast<std::size_t>(w)].name, "w");
  Named(graph, "matmul").inputs[1].node = w;
  Named(graph, "done").inputs[0] = Named(graph, "mean").inputs[0];
  EXPECT_THAT(Violations(graph),
              AllOf(HasSubstr("node \"matmul\": input 1 is the variable \"w\" itself"),
                    HasSubstr("node \"done\": input 0 must be a variable, is \"mul\" (Aten)")));
}

TEST(Validate, FindsCycles) {
  GraphDef graph = Everything();
  const int consumer = static_cast<int>(&Named(graph, "mean") - graph.nodes.data());
  Named(graph, "matmul").inputs.push_back({consumer, Edge::kControl});
  EXPECT_THAT(Violations(graph), HasSubstr("the graph has a cycle: "));
}

TEST(Validate, InternalOpsOnlyWhereAllowed) {
  GraphDef graph;
  graph.nodes.push_back({.name = "feed/x", .op = "Feed", .attrs = {{"index", 0}}, .outputs = {{}}});
  graph.nodes.push_back(
      {.name = "fetch/x", .op = "Fetch", .inputs = {{0, 0}}, .attrs = {{"index", 0}}});
  EXPECT_EQ(Validate(graph, true), absl::OkStatus());
  EXPECT_THAT(Violations(graph), AllOf(HasSubstr("node \"feed/x\": op Feed is inserted"),
                                       HasSubstr("node \"fetch/x\": op Fetch is inserted")));
}

TEST(Validate, BackwardNodesAddUp) {
  const auto backward = [](std::int64_t ys, std::int64_t xs, std::size_t outputs) {
    GraphDef graph;
    graph.nodes.push_back({.name = "x", .op = "Feed", .attrs = {{"index", 0}}, .outputs = {{}}});
    graph.nodes.push_back({.name = "b",
                           .op = "Backward",
                           .inputs = {{0, 0}, {0, 0}, {0, 0}},
                           .attrs = {{"num_ys", ys}, {"num_xs", xs}, {"segment", 0}},
                           .outputs = std::vector<OutputInfo>(outputs)});
    return graph;
  };
  EXPECT_EQ(Validate(backward(1, 1, 1), true), absl::OkStatus());
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  for (const auto& [ys, xs, outputs] : std::vector<std::tuple<std::int64_t, std::int64_t, int>>{
           {1, 2, 2}, {1, 1, 2}, {0, 3, 3}, {-1, 5, 5}, {huge, huge, 1}, {huge, 5, 5}}) {
    EXPECT_THAT(Violations(backward(ys, xs, static_cast<std::size_t>(outputs)), true),
                HasSubstr("node \"b\""));
  }
}

TEST(Validate, ListStaysShort) {
  GraphDef graph;
  for (int n = 0; n < 1000; ++n) {
    graph.nodes.push_back({.name = std::string(10'000, 'x'), .op = std::string(10'000, 'y')});
  }
  EXPECT_LT(Violations(graph).size(), 100'000);
  EXPECT_THAT(Violations(graph), HasSubstr(" more"));
}

AttrValue AnyAttr() {
  switch (*rc::gen::inRange(0, 6)) {
    case 0:
      return std::monostate();
    case 1:
      return *rc::gen::arbitrary<std::int64_t>();
    case 2:
      return *rc::gen::arbitrary<std::vector<std::int64_t>>();
    case 3:
      return *rc::gen::arbitrary<std::string>();
    case 4:
      return static_cast<at::ScalarType>(*rc::gen::arbitrary<std::int8_t>());
    default:
      return at::Tensor();
  }
}

void Mutate(GraphDef& graph) {
  const auto pick = [](std::size_t size) { return *rc::gen::inRange<std::size_t>(0, size); };
  Node& node = graph.nodes[pick(graph.nodes.size())];
  switch (*rc::gen::inRange(0, 9)) {
    case 0:
      node.inputs.push_back({*rc::gen::inRange(-2, 40), *rc::gen::inRange(-3, 3)});
      break;
    case 1:
      if (!node.inputs.empty()) node.inputs.erase(node.inputs.begin());
      break;
    case 2:
      node.op = graph.nodes[pick(graph.nodes.size())].op;
      break;
    case 3:
      node.name = *rc::gen::arbitrary<std::string>();
      break;
    case 4:
      node.attrs["dtype"] = AnyAttr();
      break;
    case 5:
      if (!node.attrs.empty()) node.attrs.begin()->second = AnyAttr();
      break;
    case 6:
      node.outputs.resize(pick(4));
      break;
    case 7:
      node.device = *rc::gen::arbitrary<std::string>();
      break;
    default:
      node.outputs.push_back({static_cast<at::ScalarType>(*rc::gen::arbitrary<std::int8_t>()),
                              *rc::gen::arbitrary<std::vector<std::int64_t>>(), false});
  }
}

// However a graph is broken: no crash, and a graph that passes can be walked without checks.
RC_GTEST_PROP(ValidateProperty, SurvivesMutations, ()) {
  static const GraphDef everything = Everything();
  GraphDef graph = everything;
  const int mutations = *rc::gen::inRange(1, 6);
  for (int i = 0; i < mutations; ++i) Mutate(graph);
  if (!Validate(graph, *rc::gen::arbitrary<bool>()).ok()) return;
  RC_ASSERT(TopologicalOrder(graph).ok());
  for (const Node& node : graph.nodes) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Edge& edge = node.inputs[i];
      RC_ASSERT(edge.is_control() == (static_cast<int>(i) >= NumDataInputs(node)));
      const Node& producer = graph.nodes.at(static_cast<std::size_t>(edge.node));
      RC_ASSERT(edge.is_control() ||
                static_cast<std::size_t>(edge.output) < producer.outputs.size());
    }
  }
}

}  // namespace
}  // namespace weir::graph
