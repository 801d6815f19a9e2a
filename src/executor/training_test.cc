// Gradients across segments, and models that train.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "executor/executor_testing.h"
#include "optim/spec_attrs.h"
#include "weir/ops.h"
#include "weir/optimizer.h"

namespace weir::executor {
namespace {

using ::testing::ElementsAre;

const TaskId kWorker{"worker", 0};
const TaskId kOther{"worker", 1};
const TaskId kPs{"ps", 0};

constexpr char kOnWorker[] = "/job:worker/task:0";
constexpr char kOnOther[] = "/job:worker/task:1";
constexpr char kOnPs[] = "/job:ps/task:0";

void RunInline(const std::function<void()>& work) {
  work();
}

Operation AddApply(Graph& graph, const weir::Variable& variable, Output gradient, double rate) {
  Node node;
  node.name = variable.name() + "/apply";
  node.op = "Apply";
  node.inputs = {{variable.handle().node(), 0}, {gradient.node(), gradient.index()}};
  optim::SetSpecAttrs(Sgd{.learning_rate = rate}, node.attrs);
  return graph.AddNode(std::move(node));
}

/// Minimises `loss` over all trainable variables: the target is "train".
void AddTraining(Graph& graph, Output loss, double rate) {
  std::vector<Output> reads;
  for (const weir::Variable& variable : graph.trainable_variables()) {
    reads.push_back(variable.read());
  }
  const std::vector<Output> gradients = graph.Gradients(loss, reads);
  std::vector<Operation> applies;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    applies.push_back(AddApply(graph, graph.trainable_variables()[i], gradients[i], rate));
  }
  graph.Group(applies, "train");
}

/// 3 layers of 8 -> 16 -> 16 -> 4 units. Where each layer's computation and variables sit is the
/// caller's choice; the numbers must not depend on it.
struct Mlp {
  static constexpr double kRate = 0.25;
  Graph graph{11};
  Wanted signature;

  struct Places {
    std::vector<std::string> layers;
    std::vector<std::string> variables;
  };

  explicit Mlp(const Places& places) {
    const std::int64_t sizes[] = {8, 16, 16, 4};
    const Output x = graph.Placeholder("x", at::kFloat, {-1, sizes[0]});
    const Output labels = graph.Placeholder("labels", at::kLong, {-1});
    Output hidden = x;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::string layer = "layer" + std::to_string(i);
      std::vector<weir::Variable> weights;
      {
        const DeviceScope scope(graph, places.variables[i]);
        weights.push_back(
            graph.Variable(layer + "/w", TruncatedNormal({sizes[i + 1], sizes[i]}, 0.5)));
        weights.push_back(graph.Variable(layer + "/b", Zeros({sizes[i + 1]})));
      }
      const DeviceScope scope(graph, places.layers[i]);
      hidden = ops::linear(hidden, weights[0], weights[1]);
      if (i < 2) hidden = ops::tanh(hidden);
    }
    Output loss;
    {
      const DeviceScope scope(graph, places.layers[2]);
      loss = ops::cross_entropy_loss(hidden, labels);
    }
    AddTraining(graph, loss, kRate);
    signature = {.feeds = {"x", "labels"}, .fetches = {loss.name()}, .targets = {"train"}};
  }

  static const std::vector<std::string>& Names() {
    static const std::vector<std::string> names = {"layer0/w", "layer0/b", "layer1/w",
                                                   "layer1/b", "layer2/w", "layer2/b"};
    return names;
  }
};

struct Batch {
  at::Tensor x, labels;
};

Batch BatchOf(int step) {
  // Neighbours have nothing to do with each other; the label is in the example.
  const at::Tensor numbers =
      at::arange(5 * 8, at::kFloat).add(step * 5 * 8).square().mul(0.7).sin();
  const at::Tensor x = numbers.reshape({5, 8});
  return {x, x.narrow(1, 0, 4).argmax(1)};
}

/// Losses and final weights.
using Trace = std::vector<at::Tensor>;

Trace Train(const Mlp::Places& places, int steps) {
  Mlp mlp(places);
  EXPECT_TRUE(mlp.graph.status().ok()) << mlp.graph.status();
  TestCluster cluster({kWorker, kOther, kPs}, /*cpus_per_task=*/2);
  cluster.Initialize(mlp.graph);
  const TestPlan plan = cluster.Plan(mlp.graph, mlp.signature);
  Trace trace;
  for (int step = 0; step < steps; ++step) {
    const Batch batch = BatchOf(step);
    const auto result = cluster.Run(plan, {batch.x, batch.labels});
    EXPECT_TRUE(result.status.ok()) << result.status;
    if (!result.status.ok()) return trace;
    EXPECT_FALSE(result.fetches[0].requires_grad());
    trace.push_back(result.fetches[0]);
  }
  for (const std::string& name : Mlp::Names()) trace.push_back(cluster.ValueOf(name));
  return trace;
}

/// Of the losses of the steps from `begin` to `end`.
double MeanOf(const Trace& trace, int begin, int end) {
  double sum = 0;
  for (int step = begin; step < end; ++step) {
    sum += trace[static_cast<std::size_t>(step)].item<double>();
  }
  return sum / (end - begin);
}

/// The same training as a plain libtorch program writes it.
Trace TrainWithPlainAutograd(int steps) {
  Mlp mlp({{"", "", ""}, {"", "", ""}});
  TestCluster cluster({kWorker});
  cluster.Initialize(mlp.graph);
  std::vector<at::Tensor> weights;
  for (const std::string& name : Mlp::Names()) {
    weights.push_back(cluster.ValueOf(name).set_requires_grad(true));
  }
  Trace trace;
  for (int step = 0; step < steps; ++step) {
    const Batch batch = BatchOf(step);
    const at::Tensor first = at::tanh(at::linear(batch.x, weights[0], weights[1]));
    const at::Tensor second = at::tanh(at::linear(first, weights[2], weights[3]));
    const at::Tensor loss =
        at::cross_entropy_loss(at::linear(second, weights[4], weights[5]), batch.labels);
    const std::vector<at::Tensor> gradients = torch::autograd::grad({loss}, weights);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i].detach().add_(gradients[i], -Mlp::kRate);
    }
    trace.push_back(loss.detach());
  }
  for (const at::Tensor& weight : weights) trace.push_back(weight.detach());
  return trace;
}

void ExpectBitEqual(const Trace& a, const Trace& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << i;
}

TEST(TrainingTest, EqualsPlainAutogradBitForBitWhereverTheLayersSit) {
  constexpr int kSteps = 50;
  const Trace expected = TrainWithPlainAutograd(kSteps);
  ASSERT_LT(MeanOf(expected, kSteps - 10, kSteps), MeanOf(expected, 0, 10) / 2) << "it learns";
  const std::string worker = kOnWorker, other = kOnOther, ps = kOnPs;
  const std::string cpu1 = worker + "/device:CPU:1";
  const std::vector<Mlp::Places> all = {
      {{worker, worker, worker}, {worker, worker, worker}},  // one device
      {{worker, worker, worker}, {ps, ps, ps}},              // a parameter server
      {{worker, worker, other}, {worker, worker, other}},    // a model over two workers
      {{worker, other, worker}, {ps, ps, ps}},               // back and forth
      {{worker, cpu1, worker}, {worker, worker, cpu1}},      // two devices of one task
      {{worker, worker, other}, {other, ps, worker}},
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectBitEqual(Train(all[i], kSteps), expected);
  }
}

/// Two layers on the worker, variables on the ps; the first one is a Function that tells when its
/// forward and its backward run.
struct Observed {
  Graph graph;
  Wanted signature;
  std::vector<std::string> events;

  Observed() {
    const Output x = graph.Placeholder("x", at::kFloat, {2, 3});
    weir::Variable w1, w2;
    {
      const DeviceScope scope(graph, kOnPs);
      w1 = graph.Variable("w1", Constant({3, 3}, 0.5));
      w2 = graph.Variable("w2", Constant({3, 3}, 0.25));
    }
    const Output hidden = graph.Function(
        [this](const std::vector<at::Tensor>& inputs) {
          events.emplace_back("first layer forward");
          at::Tensor y = at::matmul(inputs[0], inputs[1]);
          y.register_hook(
              [this](const at::TensorBase&) { events.emplace_back("first layer backward"); });
          return std::vector<at::Tensor>{y};
        },
        {x, w1}, {{at::kFloat, std::vector<std::int64_t>{2, 3}, true}})[0];
    const Output loss = ops::sum(ops::matmul(hidden, w2));
    AddTraining(graph, loss, 0.1);
    signature = {.feeds = {"x"}, .fetches = {loss.name()}, .targets = {"train"}};
  }
};

TEST(OverlapTest, TheLastLayersGradientLeavesBeforeTheFirstLayersIsComputed) {
  Observed model;
  TestCluster cluster({kWorker, kPs});
  cluster.Initialize(model.graph);
  const TestPlan plan = cluster.Plan(model.graph, model.signature);
  std::map<std::uint32_t, std::string> names;
  for (const graph::CrossEdge& edge : plan.graph.edges) names[edge.id] = edge.tensor;
  TestStep step(plan, cluster.NextStep(), {at::ones({2, 3})});
  int pushes = 0;
  step.on_send = [&](const SendEdge& edge, const Value&) {
    if (edge.to_device == DeviceOf(kPs) && !edge.control) {
      model.events.push_back("push " + std::to_string(++pushes));
    }
  };
  step.Start(RunInline);
  ASSERT_TRUE(step.status().ok()) << step.status();
  EXPECT_THAT(model.events,
              ElementsAre("first layer forward", "push 1", "first layer backward", "push 2"));
  EXPECT_EQ(cluster.variable("w1").version(), 1u);
  EXPECT_EQ(cluster.variable("w2").version(), 1u);
}

TEST(OverlapTest, TheFirstLayerStartsBeforeTheLastLayersWeightsArrive) {
  Observed model;
  TestCluster cluster({kWorker, kPs});
  cluster.Initialize(model.graph);
  TestPlan plan = cluster.Plan(model.graph, model.signature);
  ASSERT_EQ(plan.programs.size(), 2u);
  ASSERT_EQ(plan.programs[1]->device(), DeviceOf(kWorker));
  plan.programs.erase(plan.programs.begin());  // the test is the ps
  std::map<std::string, std::uint32_t> edges;
  for (const graph::CrossEdge& edge : plan.graph.edges) edges[edge.tensor] = edge.id;
  StepEnvironment environment;
  environment.rendezvous = std::make_shared<StepRendezvous>();
  environment.post = RunInline;
  environment.feeds = {at::ones({2, 3})};
  std::vector<std::uint64_t> echoed;
  environment.send = [&](const SendEdge&, const Value& value) {
    if (value.tensor.defined()) echoed.push_back(value.version);
  };
  StepOutcome outcome;
  int done = 0;
  StartStep(plan.programs[0], environment, [&](StepOutcome got) {
    outcome = std::move(got);
    ++done;
  });
  EXPECT_TRUE(model.events.empty());
  ASSERT_TRUE(environment.rendezvous->Put(edges.at("w1/read"), {at::full({3, 3}, 0.5), 3}).ok());
  EXPECT_THAT(model.events, ElementsAre("first layer forward"));
  EXPECT_EQ(done, 0);
  EXPECT_TRUE(echoed.empty());
  ASSERT_TRUE(environment.rendezvous->Put(edges.at("w2/read"), {at::full({3, 3}, 0.25), 4}).ok());
  EXPECT_THAT(echoed, ElementsAre(4, 3)) << "each push echoes the version of its pull";
  for (const char* apply : {"^w1/apply", "^w2/apply"}) {
    EXPECT_EQ(done, 0) << "not all updates have been acknowledged";
    ASSERT_TRUE(environment.rendezvous->Put(edges.at(apply), {}).ok());
  }
  EXPECT_EQ(done, 1);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.fetches.size(), 1U);
}

TEST(BackwardTest, ALeafUsedTwiceGetsItsWholeGradientOnce) {
  Graph graph;
  weir::Variable w;
  {
    const DeviceScope scope(graph, kOnPs);
    w = graph.Variable("w", Constant({2, 2}, 0.5));
  }
  const Output x = graph.Placeholder("x", at::kFloat, {2, 2});
  const Output loss = ops::sum(ops::matmul(ops::tanh(ops::matmul(x, w)), w) * w);
  AddTraining(graph, loss, 1.0);
  TestCluster cluster({kWorker, kPs});
  cluster.Initialize(graph);
  const TestPlan plan = cluster.Plan(graph, {.feeds = {"x"}, .targets = {"train"}});
  const at::Tensor fed = at::arange(4, at::kFloat).reshape({2, 2});
  TestStep step(plan, cluster.NextStep(), {fed});
  std::vector<at::Tensor> pushed;
  step.on_send = [&](const SendEdge& edge, const Value& value) {
    if (edge.to_device == DeviceOf(kPs) && value.tensor.defined()) pushed.push_back(value.tensor);
  };
  step.Start(RunInline);
  ASSERT_TRUE(step.status().ok()) << step.status();
  ASSERT_EQ(pushed.size(), 1u);

  const at::Tensor plain = at::full({2, 2}, 0.5).set_requires_grad(true);
  const at::Tensor plain_loss =
      at::sum(at::matmul(at::tanh(at::matmul(fed, plain)), plain) * plain);
  EXPECT_TRUE(at::equal(pushed[0], torch::autograd::grad({plain_loss}, {plain})[0]));
}

TEST(BackwardTest, AnUnusedVariableGetsAnAbsentGradientAndNoUpdate) {
  for (const std::string device : {kOnWorker, kOnPs}) {
    Graph graph;
    weir::Variable used, unused;
    {
      const DeviceScope scope(graph, device);
      used = graph.Variable("used", Ones({2}));
      unused = graph.Variable("unused", Ones({2}));
    }
    AddTraining(graph, ops::sum(ops::square(used)), 0.5);
    TestCluster cluster({kWorker, kPs});
    cluster.Initialize(graph);
    ASSERT_TRUE(cluster.Run(graph, {.targets = {"train"}}).status.ok());
    EXPECT_TRUE(at::equal(cluster.ValueOf("used"), at::zeros({2})));
    EXPECT_TRUE(at::equal(cluster.ValueOf("unused"), at::ones({2})));
    EXPECT_EQ(cluster.variable("unused").version(), 0u);
  }
}

// Two losses over a shared first layer: the tape of the shared segment is needed twice.
TEST(BackwardTest, TwoLossesShareASegment) {
  Graph graph;
  const auto w = graph.Variable("w", Constant({3}, 0.5));
  const Output hidden = ops::tanh(w);
  const Output first = ops::sum(ops::square(hidden));
  const Output second = ops::sum(ops::exp(hidden));
  const Output of_first = graph.Gradients(first, {w})[0];
  const Output of_second = graph.Gradients(second, {w, hidden})[0];
  const Output of_hidden = graph.Gradients(second, {hidden})[0];
  TestCluster cluster({kWorker});
  cluster.Initialize(graph);
  const auto result =
      cluster.Run(graph, {.fetches = {of_first.name(), of_second.name(), of_hidden.name()}});
  ASSERT_TRUE(result.status.ok()) << result.status;
  const at::Tensor plain = at::full({3}, 0.5).set_requires_grad(true);
  const at::Tensor plain_hidden = at::tanh(plain);
  const auto grad = [&](const at::Tensor& loss, const at::Tensor& x) {
    return torch::autograd::grad({loss}, {x}, {}, /*retain_graph=*/true)[0];
  };
  const at::Tensor plain_first = at::sum(at::square(plain_hidden));
  const at::Tensor plain_second = at::sum(at::exp(plain_hidden));
  EXPECT_TRUE(at::allclose(result.fetches[0], grad(plain_first, plain)));
  EXPECT_TRUE(at::equal(result.fetches[1], grad(plain_second, plain)));
  EXPECT_TRUE(at::equal(result.fetches[2], grad(plain_second, plain_hidden)));
}

TEST(BackwardTest, AnIdentityHasAGradientOfItsOwn) {
  Graph graph;
  const auto w = graph.Variable("w", Constant({3}, 2.0));
  const Output same = graph.Identity(w);
  const Output loss = ops::sum(w * same);
  const std::vector<Output> gradients = graph.Gradients(loss, {w, same});
  TestCluster cluster({kWorker});
  cluster.Initialize(graph);
  const auto result = cluster.Run(graph, {.fetches = {gradients[0].name(), gradients[1].name()}});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_TRUE(at::equal(result.fetches[0], at::full({3}, 4.0)));
  EXPECT_TRUE(at::equal(result.fetches[1], at::full({3}, 2.0)));
}

// Such an operator returns its input itself where there is nothing to do.
TEST(BackwardTest, WhatAnOperatorHandsThroughHasAGradientOfItsOwn) {
  Graph graph;
  const auto w = graph.Variable("w", Constant({3}, 2.0));
  const Output same = graph.Aten("aten::contiguous", "", {Output(w)})[0];
  const Output also = graph.Function([](const std::vector<at::Tensor>& x) { return x; }, {w},
                                     {{at::kFloat, std::vector<std::int64_t>{3}, true}})[0];
  const Output loss = ops::sum(w * same * also);
  const std::vector<Output> gradients = graph.Gradients(loss, {w, same, also});
  TestCluster cluster({kWorker});
  cluster.Initialize(graph);
  const auto result = cluster.Run(
      graph, {.fetches = {gradients[0].name(), gradients[1].name(), gradients[2].name()}});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_TRUE(at::equal(result.fetches[0], at::full({3}, 12.0)));
  EXPECT_TRUE(at::equal(result.fetches[1], at::full({3}, 4.0)));
  EXPECT_TRUE(at::equal(result.fetches[2], at::full({3}, 4.0)));
}

// A variable read in place may change between forward and backward; autograd must not refuse that.
TEST(BackwardTest, AVariableReadInPlaceMayChangeMeanwhile) {
  Graph graph;
  VariableOptions in_place;
  in_place.read_in_place = true;
  const auto w = graph.Variable("w", Ones({2}), in_place);
  store::Variable* stored = nullptr;
  const Output observed = graph.Function(
      [&](const std::vector<at::Tensor>& inputs) {
        EXPECT_TRUE(stored->AssignAdd(at::ones({2}), false).ok());
        EXPECT_TRUE(stored->Assign(at::full({2}, 3.0)).ok());
        return std::vector<at::Tensor>{at::mul(inputs[0], 1)};
      },
      {ops::square(w)}, {{at::kFloat, std::vector<std::int64_t>{2}, true}})[0];
  AddTraining(graph, ops::sum(observed), 0.5);
  TestCluster cluster({kWorker});
  cluster.Initialize(graph);
  stored = &cluster.variable("w");
  ASSERT_TRUE(cluster.Run(graph, {.targets = {"train"}}).status.ok());
  EXPECT_TRUE(at::equal(cluster.ValueOf("w"), at::zeros({2}))) << "3 - 0.5 * 2 * 3";
}

TEST(BackwardTest, TheTapeIsFreedWithItsLastBackward) {
  Graph graph;
  const auto w = graph.Variable("w", Constant({3}, 0.5));
  c10::weak_intrusive_ptr<at::StorageImpl> saved{c10::intrusive_ptr<at::StorageImpl>()};
  const Output hidden = graph.Function(
      [&](const std::vector<at::Tensor>& inputs) {
        const at::Tensor activation = at::exp(inputs[0]);  // saves its result
        saved = activation.storage().getWeakStorageImpl();
        return std::vector<at::Tensor>{at::sum(activation)};
      },
      {w}, {{at::kFloat, std::vector<std::int64_t>{}, true}})[0];
  const Output gradient = graph.Gradients(hidden, {w})[0];
  bool freed = false;
  const Output after = graph.Function(
      [&](const std::vector<at::Tensor>& inputs) {
        freed = saved.expired();
        return inputs;
      },
      {ops::mul_scalar(gradient, 1)}, {{at::kFloat, std::nullopt, false}})[0];
  TestCluster cluster({kWorker});
  cluster.Initialize(graph);
  const auto result = cluster.Run(graph, {.fetches = {after.name()}});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_TRUE(freed);
}

}  // namespace
}  // namespace weir::executor
