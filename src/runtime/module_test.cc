// A module of libtorch in the graph, over a simulated cluster, against the same module by itself.
#include "weir/module.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/cluster_testing.h"
#include "weir/device_setter.h"
#include "weir/ops.h"
#include "weir/partitioner.h"
#include "weir/strategy.h"

namespace weir::runtime {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kRate = 0.1;

struct NetImpl : torch::nn::Cloneable<NetImpl> {
  explicit NetImpl(bool normalize_hidden) : normalize(normalize_hidden) { reset(); }
  void reset() override {
    first = register_module("first", torch::nn::Linear(6, 5));
    if (normalize) norm = register_module("norm", torch::nn::BatchNorm1d(5));
    second = register_module("second", torch::nn::Linear(5, 3));
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor hidden = first(x);
    if (normalize) hidden = norm(hidden);
    return second(at::tanh(hidden));
  }
  bool normalize;
  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};

std::shared_ptr<NetImpl> MakeNet(bool normalize) {
  auto net = std::make_shared<NetImpl>(normalize);
  const at::NoGradGuard no_grad;
  int seed = 0;
  for (at::Tensor& parameter : net->parameters()) {
    parameter.copy_(
        at::sin(at::arange(parameter.numel(), at::kFloat) + ++seed).reshape(parameter.sizes()));
  }
  return net;
}

at::Tensor Inputs(int step) {
  return at::cos(at::arange(8 * 6, at::kFloat) * 0.7 + step).reshape({8, 6});
}

at::Tensor Labels(int step) {
  return at::remainder(at::arange(8, at::kLong) * 5 + step, 3);
}

void TrainPlainly(NetImpl& net, int steps) {
  for (int step = 0; step < steps; ++step) {
    const at::Tensor loss = at::cross_entropy_loss(net.forward(Inputs(step)), Labels(step));
    const std::vector<at::Tensor> parameters = net.parameters();
    const auto gradients = torch::autograd::grad({loss}, parameters);
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      at::Tensor(parameters[i]).add_(gradients[i], -kRate);
  }
}

/// The module's variables over two ps tasks, its loss on worker 0.
struct Model {
  explicit Model(const std::shared_ptr<NetImpl>& net, const VariableOptions& options = {})
      : scope(graph, ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = "/job:worker/task:0"})),
        inputs(graph.Placeholder("inputs", at::kFloat, {-1, 6})),
        labels(graph.Placeholder("labels", at::kLong, {-1})),
        module(graph, net, "net", options),
        logits(module({inputs})[0]),
        loss(ops::cross_entropy_loss(logits, labels)),
        train(NewAsyncStrategy()->Minimize(Sgd{.learning_rate = kRate}, loss)),
        updates(module.updates()) {}

  absl::StatusOr<RunResult> Step(Session& session, int step) const {
    return session.Run({{inputs, Inputs(step)}, {labels, Labels(step)}}, {loss}, {train, updates});
  }
  absl::Status Load(Session& session) const {
    const auto values = session.Run({}, module.state());
    return values.ok() ? module.Load(values->fetches) : values.status();
  }

  Graph graph;
  DeviceScope scope;
  Output inputs, labels;
  Module module;
  Output logits, loss;
  Operation train, updates;
};

class ModuleTest : public ::testing::Test {
 protected:
  ModuleTest() : cluster_(2, 1) { cluster_.StartAll(); }

  Session Open(const Graph& graph) {
    auto session = cluster_.worker(0).OpenSession(graph);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }

  TestCluster cluster_;
};

TEST_F(ModuleTest, IsTrainedLikeItselfBitForBit) {
  constexpr int kSteps = 20;
  const auto plain = MakeNet(false);
  TrainPlainly(*plain, kSteps);
  const auto net = MakeNet(false);
  const Model model(net);
  Session session = Open(model.graph);
  for (int step = 0; step < kSteps; ++step) {
    const auto result = model.Step(session, step);
    ASSERT_TRUE(result.ok()) << result.status();
  }
  EXPECT_TRUE(at::equal(net->first->weight, MakeNet(false)->first->weight)) << "not before Load";
  ASSERT_TRUE(model.Load(session).ok());
  for (const auto& item : plain->named_parameters())
    EXPECT_TRUE(at::equal(net->named_parameters()[item.key()], item.value())) << item.key();
}

TEST_F(ModuleTest, ItsVariablesHaveItsNamesAndValuesOnThePsTasks) {
  const auto net = MakeNet(true);
  const Model model(net);
  EXPECT_EQ(model.module.names(),
            (std::vector<std::string>{"first.weight", "first.bias", "norm.weight", "norm.bias",
                                      "second.weight", "second.bias", "norm.running_mean",
                                      "norm.running_var", "norm.num_batches_tracked"}));
  EXPECT_EQ(model.graph.trainable_variables().size(), 6u);
  int on_ps = 0;
  for (const Node& node : model.graph.def().nodes)
    if (node.op == "Variable" && node.device.starts_with("/job:ps/task:")) ++on_ps;
  EXPECT_EQ(on_ps, 10);  // and global_step
  Session session = Open(model.graph);
  const auto values = session.Run({}, model.module.state());
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_TRUE(at::equal((*values)[0], net->first->weight));
  EXPECT_TRUE(at::equal((*values)[7], at::ones({5})));
}

TEST_F(ModuleTest, BuffersFollowTheTraining) {
  constexpr int kSteps = 10;
  const auto plain = MakeNet(true);
  TrainPlainly(*plain, kSteps);
  const auto net = MakeNet(true);
  const Model model(net);
  Session session = Open(model.graph);
  for (int step = 0; step < kSteps; ++step) ASSERT_TRUE(model.Step(session, step).ok());
  ASSERT_TRUE(model.Load(session).ok());
  EXPECT_EQ(net->norm->num_batches_tracked.item<std::int64_t>(), kSteps);
  EXPECT_TRUE(at::allclose(net->norm->running_mean, plain->norm->running_mean, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(net->norm->running_var, plain->norm->running_var, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(net->first->weight, plain->first->weight, 1e-5, 1e-6));
}

TEST_F(ModuleTest, ACallInEvaluationModeReadsTheBuffersAndLeavesThem) {
  const auto net = MakeNet(true);
  Model model(net);
  net->eval();
  const Output evaluated = model.module({model.inputs})[0];
  EXPECT_EQ(evaluated.shape(), Shape({-1, 3}));
  Session session = Open(model.graph);
  ASSERT_TRUE(model.Step(session, 0).ok());
  const auto got = session.Run({{model.inputs, Inputs(7)}}, {evaluated});
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE(model.Load(session).ok());
  EXPECT_EQ(net->norm->num_batches_tracked.item<std::int64_t>(), 1);
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(at::equal((*got)[0], net->forward(Inputs(7))));
}

TEST_F(ModuleTest, ACallKeepsTheModeOfEachPart) {
  const auto net = MakeNet(true);
  net->norm->eval();
  const Model model(net);
  Session session = Open(model.graph);
  net->eval();
  const at::Tensor plain = at::cross_entropy_loss(net->forward(Inputs(0)), Labels(0)).detach();
  const auto result = model.Step(session, 0);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(at::equal((*result)[0], plain)) << "by the running statistics, not the minibatch's";
  ASSERT_TRUE(model.Load(session).ok());
  EXPECT_EQ(net->norm->num_batches_tracked.item<std::int64_t>(), 0);
}

TEST_F(ModuleTest, APartInTrainingChangesItsBuffersUnderAWholeInEvaluationMode) {
  const auto net = MakeNet(true);
  net->eval();
  net->norm->train();
  const Model model(net);
  Session session = Open(model.graph);
  ASSERT_TRUE(model.Step(session, 0).ok());
  ASSERT_TRUE(model.Load(session).ok());
  EXPECT_EQ(net->norm->num_batches_tracked.item<std::int64_t>(), 1);
}

TEST_F(ModuleTest, WhatIsDoneToTheModuleAfterACallIsNotSeenByIt) {
  const auto net = MakeNet(true);
  const Model model(net);
  net->eval();
  net->norm = torch::nn::BatchNorm1d(torch::nn::BatchNormOptions(5).momentum(1.0));
  net->replace_module("norm", net->norm);
  Session session = Open(model.graph);
  ASSERT_TRUE(model.Step(session, 0).ok());
  ASSERT_TRUE(model.Load(session).ok());
  const auto plain = MakeNet(true);
  plain->forward(Inputs(0));
  EXPECT_TRUE(at::allclose(net->norm->running_mean, plain->norm->running_mean, 1e-5, 1e-6));
}

TEST_F(ModuleTest, ParametersAreCutByAPartitionerAndBuffersStayWhole) {
  constexpr int kSteps = 3;
  const auto plain = MakeNet(true);
  TrainPlainly(*plain, kSteps);
  const auto net = MakeNet(true);
  const Model model(net, {.partitioner = FixedSizePartitioner(2)});
  ASSERT_TRUE(model.graph.status().ok()) << model.graph.status();
  Session session = Open(model.graph);
  const auto plan = session.DumpPlan({}, model.module.state());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(*plan, HasSubstr("net/first.weight/part_1"));
  EXPECT_THAT(*plan, Not(HasSubstr("net/norm.running_mean/part_1")));
  for (int step = 0; step < kSteps; ++step) ASSERT_TRUE(model.Step(session, step).ok());
  ASSERT_TRUE(model.Load(session).ok());
  EXPECT_EQ(net->norm->num_batches_tracked.item<std::int64_t>(), kSteps);
  EXPECT_TRUE(at::allclose(net->norm->running_var, plain->norm->running_var, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(net->first->weight, plain->first->weight, 1e-5, 1e-6));
}

TEST_F(ModuleTest, AFrozenParameterStays) {
  const auto net = MakeNet(false);
  net->first->weight.set_requires_grad(false);
  const at::Tensor before = net->first->weight.clone();
  const Model model(net);
  Session session = Open(model.graph);
  ASSERT_TRUE(model.Step(session, 0).ok());
  const at::Tensor bias = net->first->bias.detach().clone();
  ASSERT_TRUE(model.Load(session).ok());
  EXPECT_TRUE(at::equal(net->first->weight, before));
  EXPECT_FALSE(at::equal(net->first->bias, bias));
}

TEST_F(ModuleTest, TwoCallsInOneLossAddTheirGradients) {
  const auto net = MakeNet(false);
  Graph graph;
  DeviceScope scope(graph, "/job:worker/task:0");
  Module module(graph, net, "net");
  const Output loss = ops::sum(module({graph.Const(Inputs(0))})[0]) +
                      ops::sum(ops::square(module({graph.Const(Inputs(1))})[0]));
  const Operation train = NewAsyncStrategy()->Minimize(Sgd{.learning_rate = kRate}, loss);
  Session session = Open(graph);
  ASSERT_TRUE(session.Run({}, {}, {train}).ok());

  const auto plain = MakeNet(false);
  const at::Tensor plain_loss =
      plain->forward(Inputs(0)).sum() + plain->forward(Inputs(1)).square().sum();
  const auto gradients = torch::autograd::grad({plain_loss}, plain->parameters());
  const auto values = session.Run({}, module.state());
  ASSERT_TRUE(values.ok()) << values.status();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const at::Tensor expected = plain->parameters()[i].detach() - kRate * gradients[i];
    EXPECT_TRUE(at::allclose((*values)[i], expected, 1e-5, 1e-6)) << i;
  }
}

/// Buffers of several kinds; what a training step does to each shows in its value.
struct BuffersImpl : torch::nn::Cloneable<BuffersImpl> {
  BuffersImpl() { reset(); }
  void reset() override {
    mask = register_buffer("mask", at::full({3, 3}, -kInfinity).triu(1));
    edge = register_buffer("edge", at::tensor({-kInfinity, 0.F, kInfinity}));
    table = register_buffer("table", at::arange(8, at::kFloat).reshape({4, 2}));
    counts = register_buffer("counts", at::zeros({2, 3}, at::kInt));
    seen = register_buffer("seen", at::zeros({2}, at::kBool));
  }
  at::Tensor forward(const at::Tensor& x) {
    if (is_training()) {
      table.select(0, 2).add_(1);
      counts.add_(at::arange(3, at::kInt));
      edge.select(0, 1).add_(1);
      seen.fill_(true);
    }
    return at::softmax(x + mask, 1);
  }
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  at::Tensor mask, edge, table, counts, seen;
};

TEST_F(ModuleTest, BuffersKeepInfinitiesAndAddUpWhatChanges) {
  const auto net = std::make_shared<BuffersImpl>();
  Graph graph;
  const DeviceScope scope(graph, ReplicaDeviceSetter({.ps_tasks = 2}));
  Module module(graph, net, "net");
  const Output y = module({graph.Const(at::zeros({3, 3}))})[0];
  const Operation updates = module.updates();
  Session session = Open(graph);
  for (int step = 0; step < 3; ++step) {
    const auto result = session.Run({}, {y}, {updates});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ((*result)[0][0][0].item<double>(), 1) << "a step that sees one token only";
  }
  const auto values = session.Run({}, module.state());
  ASSERT_TRUE(values.ok()) << values.status();
  ASSERT_TRUE(module.Load(values->fetches).ok());
  const BuffersImpl fresh;
  EXPECT_TRUE(at::equal(net->mask, fresh.mask));
  EXPECT_TRUE(at::equal(net->edge, fresh.edge + at::tensor({0, 3, 0})));
  EXPECT_TRUE(
      at::equal(net->table, at::index_add(fresh.table, 0, at::tensor({2}), 3 * at::ones({1, 2}))));
  EXPECT_TRUE(at::equal(net->counts, at::tensor({0, 3, 6}, at::kInt).expand({2, 3})));
  EXPECT_FALSE(net->seen.any().item<bool>()) << "bools stay";
}

struct PairImpl : torch::nn::Cloneable<PairImpl> {
  PairImpl() { reset(); }
  void reset() override {}
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& x, const at::Tensor& y) {
    return {x + y, at::argmax(y, 1)};
  }
};

TEST_F(ModuleTest, SeveralTensorsGoInAndOut) {
  Graph graph;
  Module module(graph, std::make_shared<PairImpl>(), "pair");
  const Output x = graph.Const(Inputs(0));
  const Output y = graph.Const(Inputs(1));
  const auto outputs = module({x, y});
  ASSERT_EQ(outputs.size(), 2u) << graph.status();
  EXPECT_EQ(outputs[1].dtype(), at::kLong);
  Session session = Open(graph);
  const auto values = session.Run({}, {outputs[0], outputs[1]});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_TRUE(at::equal((*values)[0], Inputs(0) + Inputs(1)));
  EXPECT_TRUE(at::equal((*values)[1], at::argmax(Inputs(1), 1)));
}

// ---- Mistakes.

struct PlainImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return x; }
};

struct TiedImpl : torch::nn::Cloneable<TiedImpl> {
  TiedImpl() { reset(); }
  void reset() override {
    encoder = register_module("encoder", torch::nn::Linear(4, 4));
    decoder = register_module("decoder", torch::nn::Linear(4, 4));
    decoder->weight.set_data(encoder->weight.detach());
  }
  at::Tensor forward(const at::Tensor& x) { return decoder(encoder(x)); }
  torch::nn::Linear encoder{nullptr}, decoder{nullptr};
};

std::string Message(const Graph& graph) {
  EXPECT_TRUE(absl::IsInvalidArgument(graph.status())) << graph.status();
  return std::string(graph.status().message());
}

TEST(ModuleMistakes, AModuleThatCannotBeClonedSaysWhatToDo) {
  Graph graph;
  Module module(graph, std::make_shared<PlainImpl>(), "net");
  EXPECT_THAT(Message(graph), HasSubstr("module 'net'"));
  EXPECT_THAT(Message(graph), HasSubstr("torch::nn::Cloneable"));
  EXPECT_TRUE(module({graph.Const(Inputs(0))}).empty());
}

TEST(ModuleMistakes, TiedParametersAreNamed) {
  Graph graph;
  const Module module(graph, std::make_shared<TiedImpl>(), "net");
  EXPECT_THAT(Message(graph), HasSubstr("'encoder.weight' and 'decoder.weight' share"));
}

struct FusedImpl : torch::nn::Cloneable<FusedImpl> {
  explicit FusedImpl(std::int64_t second_row) : second(second_row) { reset(); }
  void reset() override {
    const at::Tensor fused = at::arange(12, at::kFloat).reshape({4, 3});
    query = register_parameter("query", fused.slice(0, 0, 2));
    key = register_parameter("key", fused.slice(0, second, second + 2));
  }
  at::Tensor forward(const at::Tensor& x) { return at::linear(at::linear(x, query), key.t()); }
  std::int64_t second;
  at::Tensor query, key;
};

TEST(ModuleMistakes, ViewsOfOneMemoryMayNotOverlap) {
  Graph apart;
  const Module fits(apart, std::make_shared<FusedImpl>(2), "net");
  EXPECT_TRUE(apart.status().ok()) << apart.status();
  Graph graph;
  const Module module(graph, std::make_shared<FusedImpl>(1), "net");
  EXPECT_THAT(Message(graph), HasSubstr("'query' and 'key' share"));
}

TEST(ModuleMistakes, AModuleThatHasGotOtherTensorsSaysSo) {
  Graph graph;
  const auto net = MakeNet(false);
  Module module(graph, net, "net");
  std::vector<at::Tensor> values;
  for (const at::Tensor& parameter : net->parameters())
    values.push_back(parameter.detach().clone());
  net->register_module("third", torch::nn::Linear(2, 2));
  const absl::Status status = module.Load(values);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("'third.weight'"));
  EXPECT_TRUE(module({graph.Const(Inputs(0))}).empty());
  EXPECT_THAT(Message(graph), HasSubstr("'third.weight'"));
}

TEST(ModuleMistakes, AForwardThatThrowsIsAnErrorOfTheGraph) {
  Graph graph;
  Module module(graph, MakeNet(false), "net");
  EXPECT_TRUE(module({graph.Const(at::zeros({2, 7}))}).empty());
  EXPECT_THAT(Message(graph), HasSubstr("module 'net': its forward threw"));
}

TEST(ModuleMistakes, AForwardOfAnotherNumberOfTensorsIsAnErrorOfTheGraph) {
  Graph graph;
  Module module(graph, MakeNet(false), "net");
  const Output x = graph.Const(Inputs(0));
  EXPECT_TRUE(module({x, x}).empty());
  EXPECT_THAT(Message(graph), HasSubstr("does not take 2 tensors"));
}

TEST(ModuleMistakes, ValuesOfOtherShapesAreNotLoaded) {
  Graph graph;
  const auto net = MakeNet(false);
  const Module module(graph, net, "net");
  EXPECT_TRUE(absl::IsInvalidArgument(module.Load({})));
  std::vector<at::Tensor> values;
  for (const at::Tensor& parameter : net->parameters())
    values.push_back(parameter.detach().clone());
  EXPECT_TRUE(module.Load(values).ok());
  values[1] = at::zeros({2});
  const absl::Status status = module.Load(values);
  EXPECT_THAT(std::string(status.message()), HasSubstr("first.bias"));
}

}  // namespace
}  // namespace weir::runtime
