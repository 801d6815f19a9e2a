// Variables as steps see them: reads, writes, tickets, versions.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "executor/executor_testing.h"
#include "optim/spec_attrs.h"
#include "weir/ops.h"
#include "weir/optimizer.h"

namespace weir::executor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const TaskId kWorker{"worker", 0};
const TaskId kPs{"ps", 0};

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

void RunInline(const std::function<void()>& work) {
  work();
}

weir::Variable OnPs(Graph& graph, const std::string& name, const Initializer& initializer,
                    const VariableOptions& options = {}) {
  const DeviceScope ps(graph, "/job:ps/task:0");
  return graph.Variable(name, initializer, options);
}

VariableOptions InPlace(bool in_place) {
  VariableOptions options;
  options.read_in_place = in_place;
  return options;
}

Output Ticket(Graph& graph, const weir::Variable& step, std::int64_t limit) {
  Node node;
  node.name = "ticket";
  node.op = "Ticket";
  node.inputs = {{step.handle().node(), 0}};
  node.attrs["limit"] = limit;
  node.outputs = {{at::kLong, std::vector<std::int64_t>{}, false}};
  return {&graph, graph.AddNode(std::move(node)).node(), 0};
}

Operation CompleteStep(Graph& graph, const weir::Variable& step) {
  Node node;
  node.name = "complete";
  node.op = "CompleteStep";
  node.inputs = {{step.handle().node(), 0}};
  return graph.AddNode(std::move(node));
}

Operation Apply(Graph& graph, const weir::Variable& variable, Output gradient, double rate) {
  Node node;
  node.name = variable.name() + "/apply";
  node.op = "Apply";
  node.inputs = {{variable.handle().node(), 0}, {gradient.node(), gradient.index()}};
  optim::SetSpecAttrs(Sgd{.learning_rate = rate}, node.attrs);
  return graph.AddNode(std::move(node));
}

TEST(StateTest, AssignReadAndAdd) {
  Graph graph;
  const auto w = OnPs(graph, "w", Zeros({2}));
  const Output value = graph.Placeholder("value", at::kFloat, {2});
  const Operation assign = graph.Assign(w, value);
  const Operation add = graph.AssignAdd(w, value);
  const Output initialized = graph.IsInitialized(w);
  TestCluster cluster({kWorker, kPs});
  EXPECT_FALSE(cluster.Run(graph, {.fetches = {initialized.name()}}).fetches[0].item<bool>());
  const auto too_early = cluster.Run(graph, {.fetches = {"w"}});
  EXPECT_TRUE(absl::IsFailedPrecondition(too_early.status)) << too_early.status;
  EXPECT_THAT(Message(too_early.status), AllOf(HasSubstr("Attempting to use uninitialized value w"),
                                               HasSubstr("'w/read'"), HasSubstr(DeviceOf(kPs))));

  const at::Tensor fed = at::full({2}, 1.5);
  ASSERT_TRUE(
      cluster.Run(graph, {.feeds = {"value"}, .targets = {assign.name()}}, {fed}).status.ok());
  EXPECT_TRUE(cluster.Run(graph, {.fetches = {initialized.name()}}).fetches[0].item<bool>());
  EXPECT_TRUE(at::equal(cluster.Run(graph, {.fetches = {"w"}}).fetches[0], fed));
  ASSERT_TRUE(cluster.Run(graph, {.feeds = {"value"}, .targets = {add.name()}}, {fed}).status.ok());
  EXPECT_TRUE(at::equal(cluster.Run(graph, {.fetches = {"w"}}).fetches[0], fed + fed));
  EXPECT_EQ(cluster.variable("w").version(), 2u);
}

TEST(StateTest, AFetchedVariableIsNeverOverwritten) {
  for (const bool in_place : {false, true}) {
    Graph graph;
    const auto w = graph.Variable("w", Ones({3}), InPlace(in_place));
    const Output view = ops::reshape(w, {3, 1});
    const Output one = graph.Const(at::ones({3}));
    const Operation add = graph.AssignAdd(w, one);
    TestCluster cluster({kWorker});
    cluster.Initialize(graph);
    const auto before = cluster.Run(graph, {.fetches = {"w", view.name()}});
    ASSERT_TRUE(cluster.Run(graph, {.targets = {add.name()}}).status.ok());
    EXPECT_TRUE(at::equal(before.fetches[0], at::ones({3})));
    EXPECT_TRUE(at::equal(before.fetches[1], at::ones({3, 1})));
    before.fetches[1].fill_(9);
    EXPECT_TRUE(at::equal(cluster.ValueOf("w"), at::full({3}, 2.0)));
  }
}

TEST(StateTest, ALocalReadIsACopyUnlessAskedOtherwise) {
  for (const bool in_place : {false, true}) {
    Graph graph;
    const auto w = graph.Variable("w", Ones({3}), InPlace(in_place));
    const void* seen = nullptr;
    const Output out = graph.Function(
        [&](const std::vector<at::Tensor>& inputs) {
          seen = inputs[0].const_data_ptr();
          return std::vector<at::Tensor>{at::ones({})};
        },
        {w}, {{at::kFloat, std::nullopt, false}})[0];
    TestCluster cluster({kWorker});
    cluster.Initialize(graph);
    ASSERT_TRUE(cluster.Run(graph, {.fetches = {out.name()}}).status.ok());
    EXPECT_EQ(seen == cluster.variable("w").Read()->tensor.const_data_ptr(), in_place);
  }
}

// What goes to another task is copied by the wire; what goes to another device of the same task is
// not, and must not change there.
TEST(StateTest, ARemoteReadIsSentStraightFromTheStore) {
  for (const std::string device : {"/job:worker/task:0", "/job:ps/task:0/device:CPU:1"}) {
    Graph graph;
    const auto w = OnPs(graph, "w", Ones({3}));
    Output doubled;
    {
      const DeviceScope scope(graph, device);
      doubled = ops::mul_scalar(w, 2);
    }
    TestCluster cluster({kWorker, kPs}, /*cpus_per_task=*/2);
    cluster.Initialize(graph);
    const TestPlan plan = cluster.Plan(graph, {.fetches = {doubled.name()}});
    TestStep step(plan, cluster.NextStep(), {});
    const void* sent = nullptr;
    step.on_send = [&](const SendEdge&, const Value& value) {
      if (sent == nullptr) sent = value.tensor.const_data_ptr();
    };
    step.Start(RunInline);
    ASSERT_TRUE(step.status().ok()) << step.status();
    EXPECT_EQ(sent == cluster.variable("w").Read()->tensor.const_data_ptr(),
              device == "/job:worker/task:0");
  }
}

/// An update of w on the ps by a gradient that the worker computes as 1 * (something read).
struct Push {
  Graph graph;
  Wanted signature;

  explicit Push(const std::string& device) {
    const auto w = OnPs(graph, "w", Zeros({2}));
    Output gradient;
    {
      const DeviceScope scope(graph, device);
      gradient = ops::add_scalar(w, 1);
    }
    signature.targets = {Apply(graph, w, gradient, 1.0).name()};
  }
};

TEST(StateTest, StalenessIsTheUpdatesBetweenPullAndPush) {
  for (const std::string device : {"/job:worker/task:0", "/job:ps/task:0"}) {
    Push push(device);
    TestCluster cluster({kWorker, kPs});
    cluster.Initialize(push.graph);
    const TestPlan plan = cluster.Plan(push.graph, push.signature);
    store::Variable& w = cluster.variable("w");
    ASSERT_TRUE(cluster.Run(plan).status.ok());
    EXPECT_EQ(w.staleness().Summarize().count, 1u);
    EXPECT_EQ(w.staleness().Summarize().max, 0u);
    EXPECT_EQ(w.version(), 1u);
  }
  // Three updates land between the pull of a step and its push.
  Push push("/job:worker/task:0");
  TestCluster cluster({kWorker, kPs});
  cluster.Initialize(push.graph);
  const TestPlan plan = cluster.Plan(push.graph, push.signature);
  store::Variable& w = cluster.variable("w");
  ASSERT_TRUE(cluster.Run(plan).status.ok());
  TestStep step(plan, cluster.NextStep(), {});
  bool first = true;
  step.on_send = [&](const SendEdge& edge, const Value& value) {
    if (edge.to_device != DeviceOf(kPs)) {
      EXPECT_EQ(value.version, 1u);
      return;
    }
    EXPECT_EQ(value.version, 1u) << "the push echoes the version of the pull";
    if (!std::exchange(first, false)) return;
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(w.AssignAdd(at::ones({2}), false).ok());
  };
  step.Start(RunInline);
  ASSERT_TRUE(step.status().ok()) << step.status();
  EXPECT_EQ(w.staleness().Summarize().count, 2u);
  EXPECT_EQ(w.staleness().Summarize().max, 3u);
  EXPECT_EQ(w.version(), 5u);
}

TEST(StateTest, AnUpdateWithoutAReadHasNoStaleness) {
  Graph graph;
  const auto w = graph.Variable("w", Zeros({2}));
  const Output gradient = graph.Placeholder("gradient", at::kFloat, {2});
  const Operation apply = Apply(graph, w, gradient, 0.5);
  TestCluster cluster({kWorker});
  cluster.Initialize(graph);
  ASSERT_TRUE(
      cluster.Run(graph, {.feeds = {"gradient"}, .targets = {apply.name()}}, {at::ones({2})})
          .status.ok());
  EXPECT_TRUE(at::equal(cluster.ValueOf("w"), at::full({2}, -0.5)));
  EXPECT_EQ(cluster.variable("w").staleness().Summarize().count, 0u);
}

// Such a gradient has no version; taken for version 0 it would be as old as the variable.
TEST(StateTest, AGradientThatWaitsForNoReadIsNotTakenForAnOldOne) {
  for (const std::string device : {"/job:worker/task:0", "/job:ps/task:0"}) {
    Graph graph;
    const auto w = OnPs(graph, "w", Zeros({2}));
    Output gradient, seen;
    {
      const DeviceScope scope(graph, device);
      gradient = ops::neg(graph.Placeholder("gradient", at::kFloat, {2}));
      seen = ops::neg(w);
    }
    const Wanted wanted{.feeds = {"gradient"},
                        .fetches = {seen.name()},
                        .targets = {Apply(graph, w, gradient, 0.5).name()}};
    TestCluster cluster({kWorker, kPs});
    cluster.Initialize(graph);
    store::Variable& stored = cluster.variable("w");
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(stored.AssignAdd(at::ones({2}), false).ok());
    ASSERT_TRUE(cluster.Run(graph, wanted, {at::ones({2})}).status.ok());
    EXPECT_EQ(stored.version(), 1001u);
    EXPECT_LT(stored.staleness().Summarize().max, 1000u) << device;
  }
}

TEST(StateTest, AWrongGradientIsRejected) {
  Graph graph;
  const auto w = graph.Variable("w", Zeros({2}));
  const Output gradient = graph.Placeholder("gradient", at::kFloat, {-1});
  const Operation apply = Apply(graph, w, gradient, 0.5);
  TestCluster cluster({kWorker});
  cluster.Initialize(graph);
  const auto result =
      cluster.Run(graph, {.feeds = {"gradient"}, .targets = {apply.name()}}, {at::ones({3})});
  EXPECT_TRUE(absl::IsInvalidArgument(result.status)) << result.status;
  EXPECT_THAT(Message(result.status), HasSubstr("'w/apply'"));
  EXPECT_EQ(cluster.variable("w").version(), 0u);
}

/// Takes a ticket, waits for a Function, completes.
struct Training {
  Graph graph;
  Wanted signature;
  std::function<void()> work = [] {};

  explicit Training(std::int64_t limit) {
    const auto step = OnPs(graph, "global_step", Zeros({}, at::kLong));
    const Output ticket = Ticket(graph, step, limit);
    const Output worked = graph.Function(
        [this](const std::vector<at::Tensor>& inputs) {
          work();
          return inputs;
        },
        {ticket}, {{at::kLong, std::vector<std::int64_t>{}, false}})[0];
    const Operation complete = CompleteStep(graph, step);
    graph.AddControlEdge(worked.op(), complete);
    signature = {.fetches = {worked.name()}, .targets = {complete.name()}};
  }
};

TEST(TicketTest, StepsAreCountedUpToTheLimit) {
  Training training(/*limit=*/3);
  TestCluster cluster({kWorker, kPs});
  cluster.Initialize(training.graph);
  const TestPlan plan = cluster.Plan(training.graph, training.signature);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const auto result = cluster.Run(plan);
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.ticket, i);
    EXPECT_EQ(result.fetches[0].item<std::int64_t>(), static_cast<std::int64_t>(i));
    EXPECT_EQ(cluster.ValueOf("global_step").item<std::int64_t>(), static_cast<std::int64_t>(i));
    EXPECT_EQ(cluster.variable("global_step").version(), i);
  }
  const auto result = cluster.Run(plan);
  EXPECT_TRUE(absl::IsOutOfRange(result.status)) << result.status;
  EXPECT_THAT(Message(result.status), HasSubstr("step limit 3 reached"));
  EXPECT_EQ(result.ticket, 0u);
  EXPECT_EQ(cluster.ValueOf("global_step").item<std::int64_t>(), 3);
}

TEST(TicketTest, CountingGoesOnFromTheVariable) {
  Training training(/*limit=*/12);
  TestCluster cluster({kWorker, kPs});
  cluster.Initialize(training.graph);
  const TestPlan plan = cluster.Plan(training.graph, training.signature);
  ASSERT_TRUE(cluster.variable("global_step").Assign(at::scalar_tensor(10, at::kLong)).ok());
  EXPECT_EQ(cluster.Run(plan).ticket, 11u);
  EXPECT_EQ(cluster.Run(plan).ticket, 12u);
  EXPECT_TRUE(absl::IsOutOfRange(cluster.Run(plan).status));
}

TEST(TicketTest, AFailedStepGivesItsTicketBack) {
  Training training(/*limit=*/2);
  TestCluster cluster({kWorker, kPs});
  cluster.Initialize(training.graph);
  const TestPlan plan = cluster.Plan(training.graph, training.signature);
  training.work = [] { throw std::runtime_error("no"); };
  for (int i = 0; i < 5; ++i) {
    const auto result = cluster.Run(plan);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kUnknown) << result.status;
    EXPECT_EQ(result.ticket, 1u);
  }
  training.work = [] {};
  EXPECT_TRUE(cluster.Run(plan).status.ok());
  EXPECT_TRUE(cluster.Run(plan).status.ok());
  EXPECT_TRUE(absl::IsOutOfRange(cluster.Run(plan).status));
}

TEST(TicketTest, AStepWaitsForATicketThatMayComeBack) {
  Training training(/*limit=*/1);
  TestCluster cluster({kWorker, kPs});
  cluster.Initialize(training.graph);
  const TestPlan plan = cluster.Plan(training.graph, training.signature);
  store::TicketBook& tickets = cluster.variable("global_step").tickets();
  tickets.Request({1, 1}, 1,
                  [](const absl::StatusOr<std::uint64_t>& ticket) { EXPECT_EQ(*ticket, 1u); });
  TestStep step(plan, cluster.NextStep(), {});
  step.Start(RunInline);
  EXPECT_FALSE(step.IsOver());
  tickets.Release({1, 1});
  ASSERT_TRUE(step.IsOver());
  EXPECT_TRUE(step.status().ok()) << step.status();
  EXPECT_EQ(step.ticket(), 1u);
}

TEST(TicketTest, AnAbortReachesAStepThatWaitsForATicketOnly) {
  Training training(/*limit=*/1);
  TestCluster cluster({kWorker, kPs});
  cluster.Initialize(training.graph);
  TestPlan plan = cluster.Plan(training.graph, training.signature);
  ASSERT_EQ(plan.programs[0]->device(), DeviceOf(kPs));
  store::TicketBook& tickets = cluster.variable("global_step").tickets();
  tickets.Request({1, 1}, 1, [](const absl::StatusOr<std::uint64_t>&) {});
  TestStep step(plan, cluster.NextStep(), {});
  step.Start(RunInline);
  EXPECT_FALSE(step.IsOver());
  step.rendezvous().Abort(absl::UnavailableError("the worker is gone"));
  ASSERT_TRUE(step.IsOver());
  EXPECT_EQ(step.status(), absl::UnavailableError("the worker is gone"));
  tickets.Release({1, 1});
  bool given = false;
  tickets.Request({1, 2}, 1,
                  [&](const absl::StatusOr<std::uint64_t>& ticket) { given = ticket.ok(); });
  EXPECT_TRUE(given) << "the step that ended holds no place in the queue";
}

TEST(TicketTest, ATicketThatNobodyCompletesGoesBack) {
  Graph graph;
  const auto step = graph.Variable("global_step", Zeros({}, at::kLong));
  const Output ticket = Ticket(graph, step, 1);
  TestCluster cluster({kWorker});
  cluster.Initialize(graph);
  const TestPlan plan = cluster.Plan(graph, {.fetches = {ticket.name()}});
  EXPECT_EQ(cluster.Run(plan).ticket, 1u);
  EXPECT_EQ(cluster.Run(plan).ticket, 1u);
}

TEST(StateTest, AProgramIsSmallUpToMoreWhereNothingIsComputed) {
  const auto is_small = [](std::int64_t size) {
    Graph graph;
    const auto w = graph.Variable("w", Zeros({size}));
    const Output gradient = graph.Placeholder("gradient", at::kFloat, {size});
    const Operation apply = Apply(graph, w, gradient, 0.5);
    TestCluster cluster({kWorker});
    cluster.Initialize(graph);
    return cluster.Plan(graph, {.feeds = {"gradient"}, .targets = {apply.name()}})
        .programs[0]
        ->is_small();
  };
  EXPECT_TRUE(is_small(256 * 1024));
  EXPECT_FALSE(is_small(1024 * 1024 + 1));
}

}  // namespace
}  // namespace weir::executor
