#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>

#include "graph/node_util.h"
#include "graph/op_registry.h"
#include "graph/passes.h"
#include "graph/passes_testing.h"

namespace weir::graph {
namespace {

using ::testing::ElementsAre;

constexpr char kWorker7[] = "/job:worker/replica:0/task:7/device:CPU:0";
const TaskId kSession{"worker", 7};

// The founding example: two layers, each with its parameters on a ps of its own, on worker 7.
TestGraph TwoPs() {
  TestGraph g;
  const Edge step = g.Variable("global_step", {}, kPs0);
  const Edge x = g.Placeholder("images", {-1, 784}, kWorker7);
  const Edge labels = g.Placeholder("labels", {-1}, kWorker7);
  const Edge w1 = g.Variable("weights_1", {784, 100}, kPs0);
  const Edge b1 = g.Variable("biases_1", {100}, kPs0);
  const Edge w2 = g.Variable("weights_2", {100, 10}, kPs1);
  const Edge b2 = g.Variable("biases_2", {10}, kPs1);
  const Edge reads[] = {g.Read(w1), g.Read(b1), g.Read(w2), g.Read(b2)};
  const Edge product = g.Aten("product", {x, reads[0]}, kWorker7, {-1, 100}, "aten::matmul");
  const Edge hidden = g.Aten("hidden", {product, reads[1]}, kWorker7, {-1, 100});
  const Edge logits =
      g.Aten("logits", {hidden, reads[2], reads[3]}, kWorker7, {-1, 10}, "aten::addmm");
  const Edge loss = g.Aten("loss", {logits, labels}, kWorker7, {}, "aten::cross_entropy_loss");
  const int gradients = g.Gradients("gradients", loss, {reads[0], reads[1], reads[2], reads[3]});
  const Edge ticket = g.Ticket(step);
  std::vector<int> applies;
  const Edge handles[] = {w1, b1, w2, b2};
  for (int i = 0; i < 4; ++i) {
    const int apply = g.Apply(handles[i], {.node = gradients, .output = i});
    g.After(apply, ticket.node);
    applies.push_back(apply);
  }
  const int complete = g.CompleteStep(step);
  for (const int apply : applies) g.After(complete, apply);
  g.Group("train", {complete}, kWorker7);
  return g;
}

const Signature kTrain{.feeds = {"images", "labels"}, .fetches = {"loss"}, .targets = {"train"}};

constexpr char kTwoPsText[] = R"(/job:ps/replica:0/task:0/device:CPU:0: 17 nodes
  global_step = Variable() -> handle
  weights_1 = Variable() -> handle
  biases_1 = Variable() -> handle
  weights_1/read = Read(weights_1) -> float32[784,100]
  weights_1/read_S1 = Send(weights_1/read)  edge 1
  biases_1/read = Read(biases_1) -> float32[100]
  biases_1/read_S2 = Send(biases_1/read)  edge 2
  ticket = Ticket(global_step) -> int64[]
  ticket_S5 = Send(^ticket)  edge 5
  weights_1/gradient_R6 = Recv() -> float32[784,100]  edge 6
  weights_1/apply = Apply.GradientDescent(weights_1, weights_1/gradient_R6)
  biases_1/gradient_R7 = Recv() -> float32[100]  edge 7
  biases_1/apply = Apply.GradientDescent(biases_1, biases_1/gradient_R7)
  weights_2/apply_R9 = Recv()  edge 9
  biases_2/apply_R11 = Recv()  edge 11
  complete = CompleteStep(global_step, ^weights_1/apply, ^biases_1/apply, ^weights_2/apply_R9, ^biases_2/apply_R11)
  complete_S12 = Send(^complete)  edge 12
/job:ps/replica:0/task:1/device:CPU:0: 12 nodes
  weights_2 = Variable() -> handle
  biases_2 = Variable() -> handle
  weights_2/read = Read(weights_2) -> float32[100,10]
  weights_2/read_S3 = Send(weights_2/read)  edge 3
  biases_2/read = Read(biases_2) -> float32[10]
  biases_2/read_S4 = Send(biases_2/read)  edge 4
  weights_2/gradient_R8 = Recv() -> float32[100,10]  edge 8
  weights_2/apply = Apply.GradientDescent(weights_2, weights_2/gradient_R8)
  weights_2/apply_S9 = Send(^weights_2/apply)  edge 9
  biases_2/gradient_R10 = Recv() -> float32[10]  edge 10
  biases_2/apply = Apply.GradientDescent(biases_2, biases_2/gradient_R10)
  biases_2/apply_S11 = Send(^biases_2/apply)  edge 11
/job:worker/replica:0/task:7/device:CPU:0: 24 nodes
  feed/images = Feed() -> float32[-1,784]
  feed/labels = Feed() -> float32[-1]
  weights_1/read_R1 = Recv() -> float32[784,100]  edge 1
  product = aten::matmul(feed/images, weights_1/read_R1) -> float32[-1,100]  segment 0
  biases_1/read_R2 = Recv() -> float32[100]  edge 2
  hidden = aten::add(product, biases_1/read_R2) -> float32[-1,100]  segment 0
  weights_2/read_R3 = Recv() -> float32[100,10]  edge 3
  biases_2/read_R4 = Recv() -> float32[10]  edge 4
  logits = aten::addmm(hidden, weights_2/read_R3, biases_2/read_R4) -> float32[-1,10]  segment 0
  loss = aten::cross_entropy_loss(logits, feed/labels) -> float32[]  segment 0
  fetch/loss = Fetch(loss)
  gradients/ones_like = aten::ones_like(loss) -> float32[]
  gradients/backward = Backward(loss, gradients/ones_like, weights_1/read_R1, biases_1/read_R2, weights_2/read_R3, biases_2/read_R4) -> float32[784,100], float32[100], float32[100,10], float32[10]  segment 0
  ticket_R5 = Recv()  edge 5
  weights_1/gradient = Identity(gradients/backward, ^ticket_R5) -> float32[784,100]
  weights_1/gradient_S6 = Send(weights_1/gradient)  edge 6  version of weights_1/read_R1
  biases_1/gradient = Identity(gradients/backward:1, ^ticket_R5) -> float32[100]
  biases_1/gradient_S7 = Send(biases_1/gradient)  edge 7  version of biases_1/read_R2
  weights_2/gradient = Identity(gradients/backward:2, ^ticket_R5) -> float32[100,10]
  weights_2/gradient_S8 = Send(weights_2/gradient)  edge 8  version of weights_2/read_R3
  biases_2/gradient = Identity(gradients/backward:3, ^ticket_R5) -> float32[10]
  biases_2/gradient_S10 = Send(biases_2/gradient)  edge 10  version of biases_2/read_R4
  complete_R12 = Recv()  edge 12
  train = Group(^complete_R12)
crossing edges: 12
  1: weights_1/read  /job:ps/replica:0/task:0/device:CPU:0 -> /job:worker/replica:0/task:7/device:CPU:0  float32[784,100]  313600 bytes
  2: biases_1/read  /job:ps/replica:0/task:0/device:CPU:0 -> /job:worker/replica:0/task:7/device:CPU:0  float32[100]  400 bytes
  3: weights_2/read  /job:ps/replica:0/task:1/device:CPU:0 -> /job:worker/replica:0/task:7/device:CPU:0  float32[100,10]  4000 bytes
  4: biases_2/read  /job:ps/replica:0/task:1/device:CPU:0 -> /job:worker/replica:0/task:7/device:CPU:0  float32[10]  40 bytes
  5: ^ticket  /job:ps/replica:0/task:0/device:CPU:0 -> /job:worker/replica:0/task:7/device:CPU:0  control
  6: weights_1/gradient  /job:worker/replica:0/task:7/device:CPU:0 -> /job:ps/replica:0/task:0/device:CPU:0  float32[784,100]  313600 bytes
  7: biases_1/gradient  /job:worker/replica:0/task:7/device:CPU:0 -> /job:ps/replica:0/task:0/device:CPU:0  float32[100]  400 bytes
  8: weights_2/gradient  /job:worker/replica:0/task:7/device:CPU:0 -> /job:ps/replica:0/task:1/device:CPU:0  float32[100,10]  4000 bytes
  9: ^weights_2/apply  /job:ps/replica:0/task:1/device:CPU:0 -> /job:ps/replica:0/task:0/device:CPU:0  control
  10: biases_2/gradient  /job:worker/replica:0/task:7/device:CPU:0 -> /job:ps/replica:0/task:1/device:CPU:0  float32[10]  40 bytes
  11: ^biases_2/apply  /job:ps/replica:0/task:1/device:CPU:0 -> /job:ps/replica:0/task:0/device:CPU:0  control
  12: ^complete  /job:ps/replica:0/task:0/device:CPU:0 -> /job:worker/replica:0/task:7/device:CPU:0  control
in one step:
  /job:ps/replica:0/task:0/device:CPU:0 -> /job:worker/replica:0/task:7/device:CPU:0: 2 tensors, 2 control, 314000 bytes
  /job:ps/replica:0/task:1/device:CPU:0 -> /job:ps/replica:0/task:0/device:CPU:0: 0 tensors, 2 control, 0 bytes
  /job:ps/replica:0/task:1/device:CPU:0 -> /job:worker/replica:0/task:7/device:CPU:0: 2 tensors, 0 control, 4040 bytes
  /job:worker/replica:0/task:7/device:CPU:0 -> /job:ps/replica:0/task:0/device:CPU:0: 2 tensors, 0 control, 314000 bytes
  /job:worker/replica:0/task:7/device:CPU:0 -> /job:ps/replica:0/task:1/device:CPU:0: 2 tensors, 0 control, 4040 bytes
)";

TEST(MakePlanTest, EachWeightAndEachGradientCrossesOnce) {
  const auto plan = MakePlan(TwoPs().def, kTrain, kSession);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->num_feeds, 2);
  EXPECT_EQ(plan->num_fetches, 1);
  std::vector<std::string> tensors;
  for (const CrossEdge& edge : plan->edges) tensors.push_back(edge.tensor);
  std::ranges::sort(tensors);
  EXPECT_THAT(tensors, ElementsAre("^biases_2/apply", "^complete", "^ticket", "^weights_2/apply",
                                   "biases_1/gradient", "biases_1/read", "biases_2/gradient",
                                   "biases_2/read", "weights_1/gradient", "weights_1/read",
                                   "weights_2/gradient", "weights_2/read"));
}

TEST(MakePlanTest, TheDumpOfTheFoundingExample) {
  const auto plan = MakePlan(TwoPs().def, kTrain, kSession);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(DumpText(*plan), kTwoPsText);
}

TEST(MakePlanTest, PlansAreTheSameEveryTime) {
  const auto first = MakePlan(TwoPs().def, kTrain, kSession);
  const auto second = MakePlan(TwoPs().def, kTrain, kSession);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(DumpText(*first), DumpText(*second));
  EXPECT_EQ(first->edges, second->edges);
}

TEST(MakePlanTest, AnEvaluationHasNoBackwardPart) {
  const auto plan = MakePlan(
      TwoPs().def, {.feeds = {"images", "labels"}, .fetches = {"loss"}, .targets = {}}, kSession);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const PartitionDef& partition : plan->partitions) {
    for (const Node& node : partition.graph.nodes) {
      EXPECT_NE(node.op, "Backward");
      EXPECT_FALSE(node.attrs.contains("segment")) << node.name;
    }
  }
}

TEST(MakePlanTest, CountsFeedsThatNothingNeeds) {
  const auto plan = MakePlan(
      TwoPs().def, {.feeds = {"labels", "images"}, .fetches = {"hidden"}, .targets = {}}, kSession);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->num_feeds, 2);
}

TEST(DumpTextTest, SizesThatAreNotKnown) {
  PartitionedGraph graph;
  graph.edges = {
      {.id = 1, .tensor = "a", .from = kPs0, .to = kPs1, .dtype = at::kFloat, .shape = {}},
      {.id = 2, .tensor = "b", .from = kPs0, .to = kPs1, .dtype = at::kDouble, .shape = {{-1, 2}}},
      {.id = 3, .tensor = "c", .from = kPs0, .to = kPs1, .dtype = at::kDouble, .shape = {{3, 2}}}};
  const std::string way = std::string(kPs0) + " -> " + kPs1;
  EXPECT_EQ(DumpText(graph), "crossing edges: 3\n  1: a  " + way +
                                 "  float32[...]  ? bytes\n  2: b  " + way +
                                 "  float64[-1,2]  ? bytes\n  3: c  " + way +
                                 "  float64[3,2]  48 bytes\nin one step:\n  " + way +
                                 ": 3 tensors, 0 control, more than 48 bytes\n");
}

// A random graph of differentiable operators over four devices, with control edges, outputs
// without a gradient, and gradients of up to three losses, all of which are fetched.
class RandomModel {
 public:
  RandomModel(std::uint32_t seed, int size) : random_(seed), size_(size) { Build(); }

  TestGraph g;
  Signature signature;
  std::vector<std::pair<Edge, Edge>> fetched;  // (loss, x) of each fetch

 private:
  int Below(std::size_t bound) {
    return std::uniform_int_distribution<int>(0, static_cast<int>(bound) - 1)(random_);
  }
  bool Chance(int percent) { return Below(100) < percent; }
  std::string Device() {
    constexpr const char* kDevices[] = {kPs0, kPs1, kWorker0, kWorker1};
    return kDevices[Below(4)];
  }
  Edge Pick(const std::vector<Edge>& edges) {
    return edges[static_cast<std::size_t>(Below(edges.size()))];
  }

  void Build() {
    for (int i = 0; i < 4; ++i) {
      values_.push_back(g.Read(g.Variable("v" + std::to_string(i), {}, Device())));
    }
    values_.push_back(g.Const("c", Device()));
    g.at(values_.back().node).outputs[0].shape = TestGraph::Dims();
    values_.push_back(g.Placeholder("x", {}, Device()));
    signature.feeds = {"x"};
    for (int i = 0; i < size_; ++i) AddOperator("n" + std::to_string(i));
    const int losses = 1 + Below(3);
    for (int i = 0; i < losses; ++i) AddGradients("g" + std::to_string(i));
  }

  void AddOperator(const std::string& name) {
    std::vector<Edge> inputs;
    const int count = 1 + Below(3);
    // Mostly recent values, so that paths become long.
    for (int i = 0; i < count; ++i) {
      const std::size_t recent = std::min<std::size_t>(values_.size(), Chance(70) ? 4 : 1000);
      inputs.push_back(values_[values_.size() - 1 - static_cast<std::size_t>(Below(recent))]);
    }
    const Edge made =
        Chance(10) ? g.Identity(name, inputs[0], Device()) : g.Aten(name, inputs, Device(), {});
    if (Chance(15)) g.After(made.node, Pick(values_).node);
    values_.push_back(made);
    Node& node = g.at(made.node);
    if (node.op == "Identity") return;
    if (Chance(10)) node.outputs[0].differentiable = false;
    if (Chance(20)) {
      node.outputs.push_back(node.outputs[0]);
      values_.push_back({.node = made.node, .output = 1});
    }
  }

  void AddGradients(const std::string& name) {
    const Edge loss = Chance(70) ? values_.back() : Pick(values_);
    std::vector<Edge> xs;
    const int count = 1 + Below(5);
    for (int i = 0; i < count; ++i) {
      const Edge x = Pick(values_);
      if (HasGradientOf(x)) xs.push_back(x);
    }
    if (xs.empty()) xs.push_back(values_[0]);
    g.Gradients(name, loss, xs, Device());
    for (std::size_t i = 0; i < xs.size(); ++i) {
      signature.fetches.push_back(name + ":" + std::to_string(i));
      fetched.emplace_back(loss, xs[i]);
    }
  }

  // Not what an operator makes without differentiating it: that may not be asked for.
  bool HasGradientOf(const Edge& x) {
    const Node& node = g.at(x.node);
    return node.op != "Aten" || InfoOf(g.def, x).differentiable;
  }

  std::mt19937 random_;
  const int size_;
  std::vector<Edge> values_;
};

// Each edge crosses once, its two ends are there, nothing gets stuck, and every gradient is the one
// that going back through the whole graph gives.
void CheckModel(const RandomModel& model) {
  const auto plan = MakePlan(model.g.def, model.signature, {"worker", 0});
  if (!plan.ok()) RC_FAIL(std::string(plan.status().message()));

  std::set<std::pair<std::string, std::string>> crossings;
  for (const CrossEdge& edge : plan->edges) {
    RC_ASSERT(edge.from != edge.to);
    RC_ASSERT(crossings.emplace(edge.tensor, edge.to).second);
  }
  std::map<std::int64_t, int> sends;
  std::map<std::int64_t, int> recvs;
  for (const PartitionDef& partition : plan->partitions) {
    RC_ASSERT(IsOrdered(partition.graph));
    const absl::Status valid = Validate(partition.graph, /*allow_internal=*/true);
    if (!valid.ok()) RC_FAIL(std::string(valid.message()));
    for (const Node& node : partition.graph.nodes) {
      RC_ASSERT(node.device == partition.device);
      if (node.op == "Send") ++sends[AttrOr<std::int64_t>(node, "edge", 0)];
      if (node.op == "Recv") ++recvs[AttrOr<std::int64_t>(node, "edge", 0)];
    }
  }
  for (const CrossEdge& edge : plan->edges) {
    RC_ASSERT(sends[edge.id] == 1);
    RC_ASSERT(recvs[edge.id] == 1);
  }
  RC_ASSERT(sends.size() == plan->edges.size());
  RC_ASSERT(recvs.size() == plan->edges.size());

  ExactRun run;
  RC_ASSERT(run.Run(*plan) == std::vector<std::string>());
  for (std::size_t i = 0; i < model.fetched.size(); ++i) {
    const auto& [loss, x] = model.fetched[i];
    const auto expected = ExactRun::Gradient(model.g.def, loss, x);
    if (run.fetches.at(static_cast<std::int64_t>(i)) != expected) {
      RC_FAIL("gradient of " + TensorName(model.g.def, loss) + " with respect to " +
              TensorName(model.g.def, x));
    }
  }
}

RC_GTEST_PROP(MakePlanProperty, GradientsAreThoseOfTheWholeGraph, (std::uint32_t seed)) {
  CheckModel(RandomModel(seed, *rc::gen::inRange(1, 60)));
}

// Whatever a node of a segment comes after, on any way, is not in a segment of a higher number: so
// segments wait for each other in one direction only.
RC_GTEST_PROP(MakePlanProperty, SegmentsHaveNoCycle, (std::uint32_t seed)) {
  RandomModel model(seed, *rc::gen::inRange(1, 60));
  auto pruned = PruneGraph(model.g.def, model.signature, {"worker", 0});
  RC_ASSERT(pruned.ok());
  const absl::Status expanded = ExpandGradients(*pruned);
  if (!expanded.ok()) RC_FAIL(std::string(expanded.message()));
  const auto segment = [&](int n) {
    return AttrOr<std::int64_t>(NodeAt(*pruned, n), "segment", -1);
  };
  // The highest segment that each node comes after, on any way.
  std::vector<std::int64_t> highest(pruned->nodes.size(), -1);
  const std::vector<int> order = TopologicalOrder(*pruned).value();
  for (const int n : order) {
    if (NodeAt(*pruned, n).op == "Backward") continue;
    for (const Edge& input : NodeAt(*pruned, n).inputs) {
      auto& mine = highest[static_cast<std::size_t>(n)];
      mine = std::max({mine, highest[static_cast<std::size_t>(input.node)], segment(input.node)});
    }
    if (segment(n) >= 0) RC_ASSERT(highest[static_cast<std::size_t>(n)] <= segment(n));
  }
}

// Two thousand nodes on four devices: a chain of layers, each with a parameter and its update.
TEST(MakePlanTest, APlanOfTwoThousandNodesIsMadeQuickly) {
  TestGraph g;
  std::vector<Edge> reads;
  std::vector<Edge> handles;
  constexpr const char* kDevices[] = {kPs0, kPs1};
  Edge value = g.Placeholder("x", {}, kWorker0);
  for (int i = 0; i < 400; ++i) {
    handles.push_back(g.Variable("w" + std::to_string(i), {}, kDevices[i % 2]));
    reads.push_back(g.Read(handles.back()));
    const std::string device = i / 100 % 2 == 0 ? kWorker0 : kWorker1;
    value = g.Aten("a" + std::to_string(i), {value, reads.back()}, device, {});
    value = g.Aten("b" + std::to_string(i), {value}, device, {});
  }
  const int gradients = g.Gradients("gradients", value, reads);
  std::vector<int> applies;
  for (int i = 0; i < 400; ++i) {
    applies.push_back(
        g.Apply(handles[static_cast<std::size_t>(i)], {.node = gradients, .output = i}));
  }
  g.Group("train", applies, kWorker0);
  const Signature signature{.feeds = {"x"}, .fetches = {}, .targets = {"train"}};
  ASSERT_GE(g.def.nodes.size(), 2000U);

  // A sanitizer or a debug build is several times slower. One quick try of many is enough: the
  // machine may be busy.
#ifdef NDEBUG
  constexpr std::chrono::milliseconds kLimit(50);
#else
  constexpr std::chrono::milliseconds kLimit(1000);
#endif
  auto fastest = std::chrono::nanoseconds::max();
  for (int i = 0; i < 20 && fastest >= kLimit; ++i) {
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(MakePlan(g.def, signature, {"worker", 0}).ok());
    fastest = std::min<std::chrono::nanoseconds>(fastest, std::chrono::steady_clock::now() - start);
  }
  RecordProperty("microseconds", static_cast<int>(fastest.count() / 1000));
  EXPECT_LT(fastest, kLimit);
}

}  // namespace
}  // namespace weir::graph
