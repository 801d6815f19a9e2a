// What steps make of a module's state: of several sessions and workers, of dropout, of constants.
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <torch/nn/modules/batchnorm.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/cluster_testing.h"
#include "weir/device_setter.h"
#include "weir/module.h"
#include "weir/ops.h"
#include "weir/strategy.h"

namespace weir::runtime {
namespace {

using torch::nn::BatchNorm1dImpl;

at::Tensor Inputs(int step) {
  return at::cos(at::arange(8 * 3, at::kFloat) * 0.7 + step).reshape({8, 3});
}

/// A batch norm as worker `index` of the cluster builds it, with its variables on the ps task.
struct Norm {
  explicit Norm(int index)
      : scope(graph,
              ReplicaDeviceSetter(
                  {.ps_tasks = 1, .worker_device = "/job:worker/task:" + std::to_string(index)})),
        net(std::make_shared<BatchNorm1dImpl>(3)),
        inputs(graph.Placeholder("inputs", at::kFloat, {-1, 3})),
        module(graph, net, "norm"),
        before(module.updates()),
        normal(module({inputs})[0]),
        updates(module.updates()) {}

  absl::Status Step(Session& session, int step, const std::vector<Operation>& targets) const {
    return session.Run({{inputs, Inputs(step)}}, {normal}, targets).status();
  }
  absl::Status Load(Session& session) const {
    const auto values = session.Run({}, module.state());
    return values.ok() ? module.Load(values->fetches) : values.status();
  }

  Graph graph;
  DeviceScope scope;
  std::shared_ptr<BatchNorm1dImpl> net;
  Output inputs;
  Module module;
  Operation before;
  Output normal;
  Operation updates;
};

/// What the plain module has after `steps` minibatches.
BatchNorm1dImpl AfterSteps(int steps) {
  BatchNorm1dImpl net(3);
  for (int step = 0; step < steps; ++step) net.forward(Inputs(step));
  return net;
}

void ExpectSameBuffers(const BatchNorm1dImpl& got, const BatchNorm1dImpl& expected) {
  EXPECT_TRUE(at::equal(got.num_batches_tracked, expected.num_batches_tracked))
      << got.num_batches_tracked;
  EXPECT_TRUE(at::allclose(got.running_mean, expected.running_mean, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(got.running_var, expected.running_var, 1e-5, 1e-6));
}

class ModuleSteps : public ::testing::Test {
 protected:
  ModuleSteps() : cluster_(1, 2) { cluster_.StartAll(); }

  Session Open(const Graph& graph, int worker = 0) {
    auto session = cluster_.worker(worker).OpenSession(graph);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }

  TestCluster cluster_;
};

TEST_F(ModuleSteps, TwoSessionsOfOneModuleShareItsState) {
  const Norm norm(0);
  Session first = Open(norm.graph);
  Session second = Open(norm.graph);
  ASSERT_TRUE(norm.Step(first, 0, {norm.updates}).ok());
  ASSERT_TRUE(norm.Step(second, 1, {norm.updates}).ok());
  ASSERT_TRUE(norm.Step(first, 2, {norm.updates}).ok());
  ASSERT_TRUE(norm.Load(second).ok());
  ExpectSameBuffers(*norm.net, AfterSteps(3));
}

TEST_F(ModuleSteps, ChangesOfSeveralWorkersAddUp) {
  const Norm one(0);
  const Norm other(1);
  Session session_of_one = Open(one.graph, 0);
  Session session_of_other = Open(other.graph, 1);
  for (int step = 0; step < 6; step += 2) {
    ASSERT_TRUE(one.Step(session_of_one, step, {one.updates}).ok());
    ASSERT_TRUE(other.Step(session_of_other, step + 1, {other.updates}).ok());
  }
  ASSERT_TRUE(one.Load(session_of_one).ok());
  ExpectSameBuffers(*one.net, AfterSteps(6));
}

TEST_F(ModuleSteps, UpdatesTwiceAreMadeOnceAndBeforeACallNever) {
  Norm norm(0);
  const Operation again = norm.module.updates();
  ASSERT_TRUE(norm.graph.status().ok()) << norm.graph.status();
  Session session = Open(norm.graph);
  ASSERT_TRUE(norm.Step(session, 0, {norm.updates, again}).ok());
  ASSERT_TRUE(norm.Step(session, 7, {norm.before}).ok());
  ASSERT_TRUE(norm.Step(session, 7, {}).ok());
  ASSERT_TRUE(norm.Load(session).ok());
  ExpectSameBuffers(*norm.net, AfterSteps(1));
}

struct DropImpl : torch::nn::Cloneable<DropImpl> {
  void reset() override {}
  at::Tensor forward(const at::Tensor& x) { return at::dropout(x, 0.5, is_training()); }
};

TEST_F(ModuleSteps, DropoutDrawsFromTheGeneratorOfTheProcessInTrainingOnly) {
  Graph graph;
  const auto net = std::make_shared<DropImpl>();
  Module module(graph, net, "drop");
  const Output x = graph.Const(at::ones({4, 16}));
  const Output dropped = module({x})[0];
  net->eval();
  const Output kept = module({x})[0];
  Session session = Open(graph);
  at::manual_seed(3);
  std::vector<at::Tensor> expected;
  for (int step = 0; step < 2; ++step)
    expected.push_back(at::dropout(at::ones({4, 16}), 0.5, true));
  at::manual_seed(3);
  for (const at::Tensor& mask : expected) {
    const auto result = session.Run({}, {dropped, kept});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(at::equal((*result)[0], mask));
    EXPECT_TRUE(at::equal((*result)[1], at::ones({4, 16})));
  }
}

struct ConstantImpl : torch::nn::Cloneable<ConstantImpl> {
  ConstantImpl() { reset(); }
  void reset() override {
    constant = register_parameter("constant", at::full({3}, 2.0));
    offset = register_buffer("offset", at::ones({3}));
  }
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor&) { return {constant, offset}; }
  at::Tensor constant, offset;
};

TEST_F(ModuleSteps, AConstantThatAModuleReturnsIsLearned) {
  Graph graph;
  const DeviceScope scope(
      graph, ReplicaDeviceSetter({.ps_tasks = 1, .worker_device = "/job:worker/task:0"}));
  Module module(graph, std::make_shared<ConstantImpl>(), "net");
  const auto outputs = module({graph.Const(at::zeros({1}))});
  ASSERT_EQ(outputs.size(), 2u) << graph.status();
  const Output loss = ops::sum(ops::square(outputs[0] + outputs[1]));
  const Operation train = NewAsyncStrategy()->Minimize(Sgd{.learning_rate = 0.25}, loss);
  Session session = Open(graph);
  double constant = 2;
  for (int step = 0; step < 3; ++step) {
    const auto read = session.Run({}, {outputs[0], outputs[1]});
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(at::equal((*read)[0], at::full({3}, constant, at::kFloat))) << (*read)[0];
    EXPECT_TRUE(at::equal((*read)[1], at::ones({3})));
    ASSERT_TRUE(session.Run({}, {loss}, {train}).ok());
    constant -= 0.25 * 2 * (constant + 1);
  }
}

}  // namespace
}  // namespace weir::runtime
