// Training over a simulated cluster, compared bit for bit with a plain libtorch loop.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <torch/csrc/autograd/autograd.h>
#include <cmath>

#include <functional>
#include <memory>
#include <vector>

#include "runtime/cluster_testing.h"
#include "weir/device_setter.h"
#include "weir/ops.h"
#include "weir/strategy.h"

namespace weir::runtime {
namespace {

constexpr double kLearningRate = 0.1;

struct Example {
  at::Tensor images, labels;
};

Example MakeExample(int step) {
  const at::Tensor base = at::arange(8 * 12, at::kFloat).reshape({8, 12});
  return {at::sin(base * 0.37 + step), at::remainder(at::arange(8, at::kLong) + step, 4)};
}

struct FirstValues {
  at::Tensor w1 = at::cos(at::arange(12 * 6, at::kFloat)).reshape({12, 6}) * 0.3;
  at::Tensor b1 = at::zeros({6});
  at::Tensor w2 = at::sin(at::arange(6 * 4, at::kFloat)).reshape({6, 4}) * 0.3;
  at::Tensor b2 = at::zeros({4});
};

/// The same two layers everywhere; `layer_device` says where each layer is computed.
struct Model {
  explicit Model(const std::function<DeviceFunction(int)>& layer_device,
                 const DeviceFunction& variables) {
    images = graph.Placeholder("images", at::kFloat, {-1, 12});
    labels = graph.Placeholder("labels", at::kLong, {-1});
    FirstValues first;
    {
      DeviceScope scope(graph, variables);
      w1 = graph.Variable("w1", FromTensor(first.w1));
      b1 = graph.Variable("b1", FromTensor(first.b1));
      w2 = graph.Variable("w2", FromTensor(first.w2));
      b2 = graph.Variable("b2", FromTensor(first.b2));
      global_step = GlobalStep(graph);
    }
    Output hidden;
    {
      DeviceScope scope(graph, layer_device(0));
      hidden = ops::relu(ops::matmul(images, w1) + b1);
    }
    {
      DeviceScope scope(graph, layer_device(1));
      loss = ops::cross_entropy_loss(ops::matmul(hidden, w2) + b2, labels);
    }
  }
  Graph graph;
  Output images, labels, loss;
  Variable w1, b1, w2, b2, global_step;
};

DeviceFunction On(const std::string& device) {
  return [device](const Node&) { return device; };
}

/// What the same steps give in one process without Weir.
std::vector<double> PlainLosses(int steps, FirstValues& values) {
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const Example example = MakeExample(step);
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& value : {values.w1, values.b1, values.w2, values.b2}) {
      leaves.push_back(value.detach().set_requires_grad(true));
    }
    const at::Tensor hidden = at::relu(at::matmul(example.images, leaves[0]) + leaves[1]);
    const at::Tensor loss =
        at::cross_entropy_loss(at::matmul(hidden, leaves[2]) + leaves[3], example.labels);
    const auto gradients = torch::autograd::grad({loss}, leaves);
    losses.push_back(loss.item<double>());
    at::NoGradGuard no_grad;
    const at::Tensor targets[] = {values.w1, values.b1, values.w2, values.b2};
    for (int i = 0; i < 4; ++i)
      at::Tensor(targets[i]).add_(gradients[static_cast<std::size_t>(i)], -kLearningRate);
  }
  return losses;
}

std::vector<double> WeirLosses(Session& session, const Model& model, Operation train, int steps) {
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const Example example = MakeExample(step);
    auto result = session.Run({{model.images, example.images}, {model.labels, example.labels}},
                              {model.loss}, {train});
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) break;
    EXPECT_EQ(result->step, static_cast<std::uint64_t>(step + 1));
    losses.push_back((*result)[0].item<double>());
  }
  return losses;
}

TEST(TrainingTest, OneWorkerAndOnePsEqualAPlainLoopBitForBit) {
  constexpr int kSteps = 200;
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Model model([](int) { return On("/job:worker/task:0"); }, On("/job:ps/task:0"));
  const Operation train =
      NewAsyncStrategy()->Minimize(Sgd{.learning_rate = kLearningRate}, model.loss);
  auto session = cluster.worker(0).OpenSession(model.graph);
  ASSERT_TRUE(session.ok()) << session.status();
  FirstValues plain;
  const std::vector<double> expected = PlainLosses(kSteps, plain);
  EXPECT_EQ(WeirLosses(*session, model, train, kSteps), expected);
  auto weights = session->Run({}, {model.w1, model.b1, model.w2, model.b2, model.global_step});
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_TRUE(at::equal((*weights)[0], plain.w1));
  EXPECT_TRUE(at::equal((*weights)[1], plain.b1));
  EXPECT_TRUE(at::equal((*weights)[2], plain.w2));
  EXPECT_TRUE(at::equal((*weights)[3], plain.b2));
  EXPECT_EQ((*weights)[4].item<std::int64_t>(), kSteps);
}

TEST(TrainingTest, LayersOnTwoWorkersEqualOneDeviceBitForBit) {
  constexpr int kSteps = 50;
  TestCluster cluster(2, 2);
  cluster.StartAll();
  const auto setter = ReplicaDeviceSetter({.ps_tasks = 2,
                                           .worker_device = "/job:worker/task:0",
                                           .strategy = PlacementStrategy::kRoundRobin});
  Model model(
      [](int layer) { return On(layer == 0 ? "/job:worker/task:0" : "/job:worker/task:1"); },
      setter);
  const Operation train =
      NewAsyncStrategy()->Minimize(Sgd{.learning_rate = kLearningRate}, model.loss);
  auto session = cluster.worker(0).OpenSession(model.graph);
  ASSERT_TRUE(session.ok()) << session.status();
  FirstValues plain;
  EXPECT_EQ(WeirLosses(*session, model, train, kSteps), PlainLosses(kSteps, plain));
}

TEST(TrainingTest, AClientOutsideTheClusterTrainsTheSame) {
  constexpr int kSteps = 20;
  TestCluster cluster(2, 1);
  cluster.StartAll();
  const auto setter = ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = "/job:worker/task:0"});
  Model model([](int) { return On("/job:worker/task:0"); }, setter);
  const Operation train =
      NewAsyncStrategy()->Minimize(Sgd{.learning_rate = kLearningRate}, model.loss);
  auto session = cluster.Connect({"worker", 0}, model.graph);
  ASSERT_TRUE(session.ok()) << session.status();
  FirstValues plain;
  EXPECT_EQ(WeirLosses(*session, model, train, kSteps), PlainLosses(kSteps, plain));
  EXPECT_TRUE(session->Close().ok());
}

// Variables on two ps, global_step on the first: each update is told which step it is of.
TEST(TrainingTest, ASchedulesRateIsThatOfTheStepOnEveryTask) {
  TestCluster cluster(2, 1);
  cluster.StartAll();
  Graph graph;
  weir::Variable v;
  weir::Variable w;
  {
    DeviceScope scope(graph, "/job:ps/task:0");
    GlobalStep(graph);
    v = graph.Variable("v", Zeros({2}, at::kDouble));
  }
  {
    DeviceScope scope(graph, "/job:ps/task:1");
    w = graph.Variable("w", Zeros({2}, at::kDouble));
  }
  DeviceScope scope(graph, "/job:worker/task:0");
  const Operation train = NewAsyncStrategy()->Minimize(
      Sgd{.learning_rate = PiecewiseConstant{.boundaries = {0, 1}, .rates = {1, 10, 100}}},
      ops::sum(v + w));
  auto session = cluster.worker(0).OpenSession(graph);
  ASSERT_TRUE(session.ok()) << session.status();
  double expected = 0;
  for (const double rate : {1, 10, 100, 100}) {
    ASSERT_TRUE(session->Run({}, {}, {train}).ok());
    expected -= rate;
    const auto values = session->Run({}, {v, w});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_EQ((*values)[0][0].item<double>(), expected);
    EXPECT_EQ((*values)[1][0].item<double>(), expected);
  }
}

// Without a training step that counts, global_step says which one it is.
TEST(TrainingTest, AGradientAppliedByHandTakesItsStepFromGlobalStep) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Graph graph;
  DeviceScope scope(graph, "/job:ps/task:0");
  const auto w = graph.Variable("w", Zeros({}, at::kDouble));
  const Output one = graph.Const(at::ones({}, at::kDouble));
  const Operation apply = ApplyGradient(
      Sgd{.learning_rate = PiecewiseConstant{.boundaries = {6}, .rates = {1, 10}}}, w, one);
  const Operation go_on = graph.Assign(GlobalStep(graph), graph.Const(at::full({}, 7, at::kLong)));
  auto session = cluster.worker(0).OpenSession(graph);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Run({}, {}, {apply}).ok());
  ASSERT_TRUE(session->Run({}, {}, {go_on}).ok());
  ASSERT_TRUE(session->Run({}, {}, {apply}).ok());
  const auto values = session->Run({}, {w});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].item<double>(), -11);
}

/// loss = sum(v * a + w * b) with a = [3, 4], b = [-12, 84]: the gradients are a and b, of norms 5,
/// sqrt(7200) and together 85. u has no influence. Returns v, w and u after a step of SGD of rate 1
/// from zero, so the negated gradients.
std::vector<at::Tensor> AppliedGradients(const GradientOptions& options, double first = 0) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Graph graph;
  std::vector<Output> variables;
  {
    DeviceScope scope(graph, "/job:ps/task:0");
    for (const char* name : {"v", "w", "u"})
      variables.push_back(graph.Variable(name, Constant({2}, first, at::kDouble)));
  }
  DeviceScope scope(graph, "/job:worker/task:0");
  const Output a = graph.Const(at::tensor({3, 4}, at::kDouble));
  const Output b = graph.Const(at::tensor({-12, 84}, at::kDouble));
  const Output loss = ops::sum(variables[0] * a + variables[1] * b);
  const Operation train = NewAsyncStrategy()->Minimize(Sgd{.learning_rate = 1}, loss, options);
  auto session = cluster.worker(0).OpenSession(graph);
  EXPECT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(session->Run({}, {}, {train}).ok());
  const auto values = session->Run({}, variables);
  EXPECT_TRUE(values.ok()) << values.status();
  return {(*values)[0], (*values)[1], (*values)[2]};
}

void ExpectValues(const at::Tensor& got, double x, double y) {
  EXPECT_TRUE(at::allclose(got, at::tensor({x, y}, at::kDouble), 1e-12, 0)) << got;
}

TEST(TrainingTest, GradientsAreClippedByValueNormAndGlobalNorm) {
  auto values = AppliedGradients({.clip_value = 10});
  ExpectValues(values[0], -3, -4);
  ExpectValues(values[1], 10, -10);
  ExpectValues(values[2], 0, 0);
  const double norm = std::sqrt(144 + 7056);
  values = AppliedGradients({.clip_norm = 10});
  ExpectValues(values[0], -3, -4);
  ExpectValues(values[1], 12 * 10 / norm, -84 * 10 / norm);
  const double all = std::sqrt(25 + 144 + 7056);
  EXPECT_DOUBLE_EQ(all, 85);
  values = AppliedGradients({.clip_global_norm = 17});
  ExpectValues(values[0], -3 * 17 / all, -4 * 17 / all);
  ExpectValues(values[1], 12 * 17 / all, -84 * 17 / all);
  values = AppliedGradients({.clip_global_norm = 86});
  ExpectValues(values[1], 12, -84);
}

TEST(TrainingTest, WeightDecayIsAddedBeforeClipping) {
  auto values = AppliedGradients({.weight_decay = 0.5}, /*first=*/2);
  ExpectValues(values[0], 2 - (3 + 1), 2 - (4 + 1));
  ExpectValues(values[2], 2, 2);  // no gradient, no decay
  values = AppliedGradients({.weight_decay = 0.5, .clip_value = 4.5}, /*first=*/2);
  ExpectValues(values[0], 2 - 4, 2 - 4.5);
}

TEST(TrainingTest, ABoundThatCannotBeIsAnErrorOfTheGraph) {
  for (const GradientOptions& options :
       {GradientOptions{.clip_norm = -1}, GradientOptions{.clip_value = std::nan("")},
        GradientOptions{.weight_decay = HUGE_VAL}}) {
    Graph graph;
    const auto w = graph.Variable("w", Ones({2}));
    NewAsyncStrategy()->Minimize(Sgd{}, ops::sum(w), options);
    EXPECT_TRUE(absl::IsInvalidArgument(graph.status())) << graph.status();
  }
}

TEST(TrainingTest, ExactlyTheWantedNumberOfStepsCompletes) {
  TestCluster cluster(1, 2);
  cluster.StartAll();
  std::vector<std::unique_ptr<Model>> models;
  std::vector<Operation> trains;
  std::vector<Session> sessions;
  for (int worker = 0; worker < 2; ++worker) {
    models.push_back(std::make_unique<Model>(
        [worker](int) { return On(TaskId{"worker", worker}.DevicePrefix()); },
        On("/job:ps/task:0")));
    trains.push_back(NewAsyncStrategy({.stop_at_step = 25})->Minimize(Adam{}, models.back()->loss));
    auto session = cluster.worker(worker).OpenSession(models.back()->graph);
    ASSERT_TRUE(session.ok()) << session.status();
    sessions.push_back(*std::move(session));
  }
  int completed = 0;
  for (int turn = 0; completed < 1000 && !(sessions[0].ShouldStop() && sessions[1].ShouldStop());
       ++turn) {
    const auto worker = static_cast<std::size_t>(turn % 2);
    const Example example = MakeExample(turn);
    const auto result = sessions[worker].Run(
        {{models[worker]->images, example.images}, {models[worker]->labels, example.labels}}, {},
        {trains[worker]});
    if (absl::IsOutOfRange(result.status())) {
      EXPECT_TRUE(sessions[worker].ShouldStop());
      continue;
    }
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->step, static_cast<std::uint64_t>(++completed));
  }
  EXPECT_EQ(completed, 25);
  auto step = sessions[0].Run({}, {models[0]->global_step});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ((*step)[0].item<std::int64_t>(), 25);
  const auto status = cluster.ps(0).GetStatus(
      {.cluster_id = 0, .from = {}, .from_incarnation = 1, .to = {}, .to_incarnation = 0}, true);
  ASSERT_TRUE(status.ok()) << status.status();
  for (const auto& variable : status->variables) EXPECT_EQ(variable.version, 25u) << variable.name;
}

TEST(TrainingTest, StateOutlivesSessionsAndIsInitialisedOnce) {
  TestCluster cluster(1, 2);
  cluster.StartAll();
  for (int worker = 0; worker < 2; ++worker) {
    Graph graph;
    Variable counter;
    Operation add;
    {
      DeviceScope scope(graph, "/job:ps/task:0");
      counter = graph.Variable("counter", Zeros({}));
      add = graph.AssignAdd(counter, graph.Const(at::ones({})));
    }
    auto session = cluster.worker(worker).OpenSession(graph);
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE(session->Run({}, {}, {add}).ok());
    const auto read = session->Run({}, {counter});
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ((*read)[0].item<double>(), worker + 1);
  }
}

}  // namespace
}  // namespace weir::runtime
