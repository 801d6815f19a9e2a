#include "executor/step.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/pool_driver.h"
#include "executor/executor_testing.h"
#include "weir/ops.h"

namespace weir::executor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const TaskId kAlice{"alice", 0};
const TaskId kBob{"bob", 0};

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

void RunInline(const std::function<void()>& work) {
  work();
}

/// Work that a test runs when it wants to.
struct Queue {
  std::deque<std::function<void()>> work;

  TestStep::Post Post() {
    return [this](std::function<void()> posted) { work.push_back(std::move(posted)); };
  }
  void RunAll() {
    while (!work.empty()) {
      const auto next = std::move(work.front());
      work.pop_front();
      next();
    }
  }
};

TEST(StepTest, AddsTwoFeeds) {
  Graph graph;
  const Output a = graph.Placeholder("a", at::kFloat, {});
  const Output b = graph.Placeholder("b", at::kFloat, {});
  const Output c = a + b;
  TestCluster cluster({kAlice});
  const auto result = cluster.Run(graph, {.feeds = {"a", "b"}, .fetches = {c.name()}},
                                  {at::scalar_tensor(1.5), at::scalar_tensor(2.25)});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.fetches[0].item<double>(), 3.75);
}

TEST(StepTest, SelfAddDoublesNTimes) {
  constexpr int kDoublings = 30;
  Graph graph;
  Output value = graph.Placeholder("x", at::kLong, {});
  for (int i = 0; i < kDoublings; ++i) value = value + value;
  TestCluster cluster({kAlice});
  const auto result = cluster.Run(graph, {.feeds = {"x"}, .fetches = {value.name()}},
                                  {at::scalar_tensor(1, at::kLong)});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.fetches[0].item<std::int64_t>(), std::int64_t{1} << kDoublings);
}

// A binary tree over 4096 leaves in random pairing, spread over two tasks: the sum of the leaves
// comes out whatever the shape.
TEST(StepTest, RandomTreeSumsItsLeaves) {
  constexpr std::int64_t kLeaves = 4096;
  std::mt19937 random(5);
  Graph graph;
  std::vector<Output> roots;
  {
    const DeviceScope scope(graph, "/job:alice/task:0");
    for (std::int64_t i = 0; i < kLeaves; ++i) {
      roots.push_back(graph.Const(at::scalar_tensor(i, at::kLong)));
    }
  }
  while (roots.size() > 1) {
    const DeviceScope scope(graph, random() % 2 == 0 ? "/job:alice/task:0" : "/job:bob/task:0");
    std::swap(roots[random() % roots.size()], roots.back());
    const Output last = roots.back();
    roots.pop_back();
    Output& other = roots[random() % roots.size()];
    other = other + last;
  }
  TestCluster cluster({kAlice, kBob});
  const auto result = cluster.Run(graph, {.fetches = {roots[0].name()}});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.fetches[0].item<std::int64_t>(), kLeaves * (kLeaves - 1) / 2);
}

/// b = a * 10 on bob, c = b + 1 on alice.
struct ThereAndBack {
  Graph graph;
  Wanted signature;

  ThereAndBack() {
    const DeviceScope alice(graph, "/job:alice/task:0");
    const Output a = graph.Placeholder("a", at::kFloat, {-1});
    Output b;
    {
      const DeviceScope bob(graph, "/job:bob/task:0");
      b = graph.Aten("aten::mul", "Scalar", {a, 10.0}, "b")[0];
    }
    const Output c = graph.Aten("aten::add", "Scalar", {b, 1.0}, "c")[0];
    signature = {.feeds = {"a"}, .fetches = {c.name()}};
  }
};

TEST(StepTest, ValuesCrossDevicesAndBack) {
  ThereAndBack program;
  TestCluster cluster({kAlice, kBob});
  const TestPlan plan = cluster.Plan(program.graph, program.signature);
  ASSERT_EQ(plan.programs.size(), 2u);
  EXPECT_EQ(plan.programs[0]->device(), DeviceOf(kAlice));
  EXPECT_EQ(plan.programs[0]->sends().size(), 1u);
  EXPECT_EQ(plan.programs[0]->recvs().size(), 1u);
  EXPECT_EQ(plan.programs[0]->sends()[0].to_device, DeviceOf(kBob));
  EXPECT_EQ(plan.programs[0]->recvs()[0].from_device, DeviceOf(kBob));
  for (int i = 0; i < 5; ++i) {
    const auto result = cluster.Run(plan, {at::full({3}, i, at::kFloat)});
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_TRUE(at::equal(result.fetches[0], at::full({3}, 10 * i + 1, at::kFloat)));
  }
}

// Deliveries then call the next stretch of the peer from inside a stretch, several levels deep.
TEST(StepTest, StretchesMayRunInsideStretches) {
  ThereAndBack program;
  TestCluster cluster({kAlice, kBob});
  const TestPlan plan = cluster.Plan(program.graph, program.signature);
  TestStep step(plan, cluster.NextStep(), {at::ones({2})});
  step.Start(RunInline);
  ASSERT_TRUE(step.IsOver());
  ASSERT_TRUE(step.status().ok()) << step.status();
  EXPECT_EQ(step.done_calls(), (std::vector<int>{1, 1}));
  EXPECT_TRUE(at::equal(step.fetches()[0], at::full({2}, 11.0)));
}

TEST(StepTest, OneTaskHasTwoDevices) {
  Graph graph;
  const Output a = graph.Placeholder("a", at::kFloat, {});
  Output b;
  {
    const DeviceScope scope(graph, "/device:CPU:1");
    b = ops::mul_scalar(a, 3);
  }
  const Output c = ops::add_scalar(b, 1);
  TestCluster cluster({kAlice}, /*cpus_per_task=*/2);
  const TestPlan plan = cluster.Plan(graph, {.feeds = {"a"}, .fetches = {c.name()}});
  ASSERT_EQ(plan.programs.size(), 2u);
  const auto result = cluster.Run(plan, {at::scalar_tensor(2.0, at::kFloat)});
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.fetches[0].item<double>(), 7);
}

TEST(StepTest, ControlEdgesOrderNodesAcrossDevices) {
  Graph graph;
  std::vector<std::string> order;
  const auto recorder = [&](const std::string& name) {
    return [&order, name](const std::vector<at::Tensor>&) {
      order.push_back(name);
      return std::vector<at::Tensor>{at::ones({})};
    };
  };
  const OutputInfo scalar{at::kFloat, std::vector<std::int64_t>{}, false};
  const Output last = graph.Function(recorder("last"), {}, {scalar}, "a_last")[0];
  const Output first = graph.Function(recorder("first"), {}, {scalar}, "z_first")[0];
  Operation between;
  {
    const DeviceScope bob(graph, "/job:bob/task:0");
    const ControlDependencies after(graph, {first.op()});
    between = graph.Group({}, "between");
  }
  graph.AddControlEdge(between, last.op());
  TestCluster cluster({kAlice, kBob});
  const TestPlan plan = cluster.Plan(graph, {.fetches = {last.name()}, .targets = {}});
  EXPECT_EQ(plan.programs.size(), 2u);
  const auto result = cluster.Run(plan);
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(order, (std::vector<std::string>{"first", "last"}));
}

TEST(StepTest, RunsReadyNodesInTopologicalOrder) {
  Graph graph;
  std::vector<int> order;
  std::vector<Output> outputs;
  for (int i = 0; i < 20; ++i) {
    outputs.push_back(graph.Function(
        [&order, i](const std::vector<at::Tensor>&) {
          order.push_back(i);
          return std::vector<at::Tensor>{at::ones({})};
        },
        {}, {{at::kFloat, std::vector<std::int64_t>{}, false}})[0]);
  }
  const Output all = ops::sum(ops::stack(outputs));
  TestCluster cluster({kAlice});
  ASSERT_TRUE(cluster.Run(graph, {.fetches = {all.name()}}).status.ok());
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(order.size(), 20u);
}

TEST(StepTest, SendsLeaveBeforeTheNextNodeRuns) {
  Graph graph;
  std::vector<std::string> events;
  const DeviceScope alice(graph, "/job:alice/task:0");
  const OutputInfo scalar{at::kFloat, std::vector<std::int64_t>{}, false};
  const Output a = graph.Placeholder("a", at::kFloat, {});
  const Output shared = ops::mul_scalar(a, 2);
  const Output local = graph.Function(
      [&](const std::vector<at::Tensor>& inputs) {
        events.emplace_back("local");
        return inputs;
      },
      {shared}, {scalar})[0];
  Output remote;
  {
    const DeviceScope bob(graph, "/job:bob/task:0");
    remote = ops::mul_scalar(shared, 2);
  }
  TestCluster cluster({kAlice, kBob});
  const TestPlan plan =
      cluster.Plan(graph, {.feeds = {"a"}, .fetches = {local.name(), remote.name()}});
  TestStep step(plan, cluster.NextStep(), {at::ones({})});
  step.on_send = [&](const SendEdge& edge, const Value&) {
    if (edge.to_device == DeviceOf(kBob)) events.emplace_back("send");
  };
  Queue queue;
  step.Start(queue.Post());
  queue.RunAll();
  ASSERT_TRUE(step.status().ok()) << step.status();
  EXPECT_EQ(events, (std::vector<std::string>{"send", "local"}));
}

TEST(StepTest, FreesAValueWhenItsLastConsumerHasRun) {
  Graph graph;
  c10::weak_intrusive_ptr<at::StorageImpl> storage =
      c10::weak_intrusive_ptr<at::StorageImpl>(c10::intrusive_ptr<at::StorageImpl>());
  bool alive_in_consumer = false, alive_afterwards = true;
  const OutputInfo any{at::kFloat, std::nullopt, false};
  const Output big = graph.Function(
      [&](const std::vector<at::Tensor>&) {
        const at::Tensor tensor = at::ones({1000});
        storage = tensor.storage().getWeakStorageImpl();
        return std::vector<at::Tensor>{tensor};
      },
      {}, {any})[0];
  const Output small = graph.Function(
      [&](const std::vector<at::Tensor>& inputs) {
        alive_in_consumer = !storage.expired();
        return std::vector<at::Tensor>{inputs[0].sum()};
      },
      {big}, {any})[0];
  const Output last = graph.Function(
      [&](const std::vector<at::Tensor>& inputs) {
        alive_afterwards = !storage.expired();
        return inputs;
      },
      {small}, {any})[0];
  TestCluster cluster({kAlice});
  ASSERT_TRUE(cluster.Run(graph, {.fetches = {last.name()}}).status.ok());
  EXPECT_TRUE(alive_in_consumer);
  EXPECT_FALSE(alive_afterwards);
}

TEST(StepTest, ErrorsOfOperatorsNameNodeAndDevice) {
  Graph graph;
  const Output a = graph.Placeholder("a", at::kFloat, {-1});
  const Output b = graph.Placeholder("b", at::kFloat, {-1});
  const Output bad = graph.Aten("aten::add", "Tensor", {a, b}, "bad_sum")[0];
  TestCluster cluster({kAlice});
  const auto result = cluster.Run(graph, {.feeds = {"a", "b"}, .fetches = {bad.name()}},
                                  {at::ones({2}), at::ones({3})});
  EXPECT_TRUE(absl::IsInvalidArgument(result.status)) << result.status;
  EXPECT_THAT(Message(result.status),
              AllOf(HasSubstr("'bad_sum'"), HasSubstr("aten::add"), HasSubstr(DeviceOf(kAlice)),
                    HasSubstr("size of tensor a (2)")));
  EXPECT_TRUE(result.fetches[0].defined() == false);
}

TEST(StepTest, ErrorsOfFunctionsNameNodeDeviceAndCause) {
  const OutputInfo vector{at::kFloat, std::vector<std::int64_t>{2}, false};
  const auto run = [&](TensorFunction function) {
    Graph graph;
    const Output bad = graph.Function(std::move(function), {}, {vector}, "mine")[0];
    TestCluster cluster({kAlice});
    return cluster.Run(graph, {.fetches = {bad.name()}}).status;
  };
  const absl::Status threw = run([](const std::vector<at::Tensor>&) -> std::vector<at::Tensor> {
    throw std::runtime_error("no more bananas");
  });
  EXPECT_EQ(threw.code(), absl::StatusCode::kUnknown);
  EXPECT_THAT(Message(threw), AllOf(HasSubstr("'mine'"), HasSubstr(DeviceOf(kAlice)),
                                    HasSubstr("no more bananas")));
  const std::vector<std::vector<at::Tensor>> wrong = {{},
                                                      {at::ones({2}), at::ones({2})},
                                                      {at::ones({3})},
                                                      {at::ones({2}, at::kLong)},
                                                      {at::Tensor()}};
  for (const auto& outputs : wrong) {
    const absl::Status status = run([&](const std::vector<at::Tensor>&) { return outputs; });
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("'mine'"));
  }
}

TEST(StepTest, BadFeedsAreRejected) {
  Graph graph;
  const Output a = graph.Placeholder("a", at::kFloat, {-1, 2});
  const Output b = ops::neg(a);
  TestCluster cluster({kAlice});
  const TestPlan plan = cluster.Plan(graph, {.feeds = {"a"}, .fetches = {b.name()}});
  for (const auto& feeds : std::vector<std::vector<at::Tensor>>{{},
                                                                {at::Tensor()},
                                                                {at::ones({3})},
                                                                {at::ones({3, 3})},
                                                                {at::ones({3, 2}, at::kLong)}}) {
    const auto result = cluster.Run(plan, feeds);
    EXPECT_TRUE(absl::IsInvalidArgument(result.status)) << result.status;
    EXPECT_THAT(Message(result.status), HasSubstr("feed/a"));
  }
  EXPECT_TRUE(cluster.Run(plan, {at::ones({3, 2})}).status.ok());
}

// The value comes from a peer: it is checked against the graph before anybody uses it.
TEST(StepTest, BadValuesFromAPeerAreRejected) {
  ThereAndBack program;
  TestCluster cluster({kAlice, kBob});
  TestPlan plan = cluster.Plan(program.graph, program.signature);
  const std::uint32_t edge = plan.programs[1]->recvs()[0].edge;
  plan.programs.erase(plan.programs.begin());  // the test is alice
  TestStep step(plan, cluster.NextStep(), {});
  step.Start(RunInline);
  EXPECT_FALSE(step.IsOver());
  ASSERT_TRUE(step.rendezvous().Put(edge, {at::ones({2}, at::kLong), 0}).ok());
  ASSERT_TRUE(step.IsOver());
  EXPECT_TRUE(absl::IsInvalidArgument(step.status())) << step.status();
  EXPECT_THAT(Message(step.status()), AllOf(HasSubstr("Recv"), HasSubstr(DeviceOf(kBob))));
}

TEST(StepTest, AnErrorEndsEveryPartitionWithTheRootCause) {
  Graph graph;
  const Output a = graph.Placeholder("a", at::kFloat, {});
  const OutputInfo scalar{at::kFloat, std::vector<std::int64_t>{}, false};
  const Output bad = graph.Function(
      [](const std::vector<at::Tensor>&) -> std::vector<at::Tensor> {
        throw std::runtime_error("root cause");
      },
      {a}, {scalar})[0];
  Output there;
  {
    const DeviceScope bob(graph, "/job:bob/task:0");
    there = ops::neg(bad);
  }
  const Output back = ops::neg(there);
  TestCluster cluster({kAlice, kBob});
  const TestPlan plan = cluster.Plan(graph, {.feeds = {"a"}, .fetches = {back.name()}});
  for (int i = 0; i < 4; ++i) {
    const auto result = cluster.Run(plan, {at::ones({})});
    EXPECT_THAT(Message(result.status), HasSubstr("root cause"));
  }
}

TEST(StepTest, AnAbortFromOutsideEndsAStepThatWaits) {
  ThereAndBack program;
  TestCluster cluster({kAlice, kBob});
  TestPlan plan = cluster.Plan(program.graph, program.signature);
  plan.programs.pop_back();  // bob never answers
  TestStep step(plan, cluster.NextStep(), {at::ones({1})});
  step.Start(RunInline);
  EXPECT_FALSE(step.IsOver());
  step.rendezvous().Abort(absl::UnavailableError("bob is gone"));
  EXPECT_TRUE(step.IsOver());
  EXPECT_EQ(step.status(), absl::UnavailableError("bob is gone"));
}

TEST(StepTest, AnAbortFromOutsideEndsAStepBetweenTwoNodes) {
  Graph graph;
  std::shared_ptr<StepRendezvous> rendezvous = std::make_shared<StepRendezvous>();
  int calls = 0;
  Output value = graph.Placeholder("a", at::kFloat, {});
  for (int i = 0; i < 5; ++i) {
    value = graph.Function(
        [&](const std::vector<at::Tensor>& inputs) {
          if (++calls == 2) rendezvous->Abort(absl::CancelledError("enough"));
          return inputs;
        },
        {value}, {{at::kFloat, std::vector<std::int64_t>{}, false}})[0];
  }
  TestCluster cluster({kAlice});
  const TestPlan plan = cluster.Plan(graph, {.feeds = {"a"}, .fetches = {value.name()}});
  StepEnvironment environment;
  environment.rendezvous = rendezvous;
  environment.post = RunInline;
  environment.feeds = {at::ones({})};
  StepOutcome outcome;
  StartStep(plan.programs[0], environment, [&](StepOutcome got) { outcome = std::move(got); });
  EXPECT_EQ(outcome.status, absl::CancelledError("enough"));
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(outcome.fetches.empty());
}

TEST(StepTest, AStepOfAnAbortedRendezvousRunsNothing) {
  ThereAndBack program;
  TestCluster cluster({kAlice, kBob});
  const TestPlan plan = cluster.Plan(program.graph, program.signature);
  TestStep step(plan, cluster.NextStep(), {at::ones({1})});
  step.on_send = [](const SendEdge&, const Value&) { ADD_FAILURE(); };
  step.rendezvous().Abort(absl::AbortedError("too late"));
  step.Start(RunInline);
  ASSERT_TRUE(step.IsOver());
  EXPECT_EQ(step.status(), absl::AbortedError("too late"));
}

TEST(StepTest, AStepWhoseWorkIsDroppedEndsCancelled) {
  ThereAndBack program;
  TestCluster cluster({kAlice, kBob});
  const TestPlan plan = cluster.Plan(program.graph, program.signature);
  TestStep step(plan, cluster.NextStep(), {at::ones({1})});
  step.Start([](const std::function<void()>&) {});
  ASSERT_TRUE(step.IsOver());
  EXPECT_TRUE(absl::IsCancelled(step.status())) << step.status();
  EXPECT_EQ(step.done_calls(), (std::vector<int>{1, 1}));
}

TEST(StepTest, StepsOfOneProgramRunSideBySide) {
  ThereAndBack program;
  TestCluster cluster({kAlice, kBob});
  const TestPlan plan = cluster.Plan(program.graph, program.signature);
  TestStep one(plan, cluster.NextStep(), {at::full({1}, 1.0)});
  TestStep two(plan, cluster.NextStep(), {at::full({1}, 2.0)});
  Queue queue;
  one.Start(queue.Post());
  two.Start(queue.Post());
  queue.RunAll();
  EXPECT_EQ(one.fetches()[0].item<double>(), 11);
  EXPECT_EQ(two.fetches()[0].item<double>(), 21);
}

TEST(StepTest, RandomOperatorsFollowSeedNodeAndStep) {
  const auto draw = [](std::uint64_t seed, std::uint64_t number) {
    Graph graph(seed);
    const Output ones = graph.Const(at::ones({100}));
    const Output a = graph.Aten("aten::bernoulli", "p", {ones, 0.5}, "a")[0];
    const Output b = graph.Aten("aten::bernoulli", "p", {ones, 0.5}, "b")[0];
    EXPECT_TRUE(graph.status().ok()) << graph.status();
    TestCluster cluster({kAlice});
    const TestPlan plan = cluster.Plan(graph, {.fetches = {a.name(), b.name()}});
    while (cluster.NextStep().step < number) {
    }
    return cluster.Run(plan).fetches;
  };
  const auto first = draw(1, 1);
  EXPECT_FALSE(at::equal(first[0], first[1])) << "two nodes draw apart";
  const auto again = draw(1, 1);
  EXPECT_TRUE(at::equal(first[0], again[0]) && at::equal(first[1], again[1]));
  EXPECT_FALSE(at::equal(first[0], draw(1, 2)[0])) << "two steps draw apart";
  EXPECT_FALSE(at::equal(first[0], draw(2, 1)[0])) << "two seeds draw apart";
}

TEST(StepTest, FetchedConstantsAreCopies) {
  Graph graph;
  const Output constant = graph.Const(at::ones({2}));
  const Output view = ops::reshape(constant, {2, 1});
  TestCluster cluster({kAlice});
  const TestPlan plan = cluster.Plan(graph, {.fetches = {constant.name(), view.name()}});
  for (int i = 0; i < 2; ++i) {
    const auto result = cluster.Run(plan);
    EXPECT_TRUE(at::equal(result.fetches[0], at::ones({2})));
    EXPECT_TRUE(at::equal(result.fetches[1], at::ones({2, 1})));
    result.fetches[0].fill_(7);
    result.fetches[1].fill_(8);
  }
}

TEST(StepTest, WhatIsSentHasItsOwnStorage) {
  Graph graph;
  const DeviceScope alice(graph, "/job:alice/task:0");
  const Output a = graph.Placeholder("a", at::kFloat, {4, 6});
  const std::vector<Output> sent = {ops::transpose(a, 0, 1), ops::slice(a, 0, 1, 3), a};
  std::vector<std::string> fetches;
  {
    const DeviceScope bob(graph, "/job:bob/task:0");
    for (const Output& value : sent) fetches.push_back(ops::neg(value).name());
  }
  TestCluster cluster({kAlice, kBob});
  const TestPlan plan = cluster.Plan(graph, {.feeds = {"a"}, .fetches = fetches});
  const at::Tensor feed = at::arange(24, at::kFloat).reshape({4, 6});
  TestStep step(plan, cluster.NextStep(), {feed});
  int from_alice = 0;
  step.on_send = [&](const SendEdge& edge, const Value& value) {
    if (edge.to_device != DeviceOf(kBob)) return;
    ++from_alice;
    EXPECT_TRUE(value.tensor.is_contiguous());
    EXPECT_EQ(value.tensor.storage().nbytes(), value.tensor.nbytes());
  };
  step.Start(RunInline);
  ASSERT_TRUE(step.status().ok()) << step.status();
  EXPECT_EQ(from_alice, 3);
  EXPECT_TRUE(at::equal(step.fetches()[0], -feed.t()));
  EXPECT_TRUE(at::equal(step.fetches()[1], -feed.slice(0, 1, 3)));
}

TEST(ProgramTest, SaysWhatIsMissing) {
  Graph graph;
  const auto variable = graph.Variable("weights", Zeros({2}));
  const Output value = graph.Function([](const std::vector<at::Tensor>& x) { return x; },
                                      {variable}, {{at::kFloat, std::nullopt, false}}, "mine")[0];
  TestCluster cluster({kAlice});
  const auto cut = cluster.Cut(graph, {.fetches = {value.name()}});
  ASSERT_TRUE(cut.ok()) << cut.status();
  store::VariableStore empty;
  CompileEnvironment environment;
  environment.store = &empty;
  environment.default_container = "alice";
  auto program = Program::Compile(cut->partitions[0], environment);
  EXPECT_TRUE(absl::IsNotFound(program.status()));
  EXPECT_THAT(Message(program.status()), HasSubstr("'weights'"));
  ASSERT_TRUE(cluster.Compile(cut->partitions[0], graph).ok());
  const Graph other;
  program = cluster.Compile(cut->partitions[0], other);
  EXPECT_TRUE(absl::IsInvalidArgument(program.status())) << program.status();
  EXPECT_THAT(Message(program.status()), HasSubstr("'mine'"));
}

TEST(ProgramTest, IsSmallWhenItsTensorsAreFewAndKnown) {
  const auto is_small = [](std::int64_t size, bool with_function) {
    Graph graph;
    Output value = graph.Placeholder("a", at::kFloat, {size});
    if (with_function) {
      value = graph.Function([](const std::vector<at::Tensor>& x) { return x; }, {value},
                             {{at::kFloat, std::vector<std::int64_t>{size}, false}})[0];
    }
    value = ops::neg(value);
    TestCluster cluster({kAlice});
    return cluster.Plan(graph, {.feeds = {"a"}, .fetches = {value.name()}}).programs[0]->is_small();
  };
  EXPECT_TRUE(is_small(8 * 1024, false));
  EXPECT_FALSE(is_small(8 * 1024 + 1, false));
  EXPECT_FALSE(is_small(-1, false));
  EXPECT_FALSE(is_small(1, true));
}

}  // namespace
}  // namespace weir::executor
