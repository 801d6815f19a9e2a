// Steps on a pool of threads, aborted at any moment: each partition says once that it is done.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/scheduler.h"
#include "executor/executor_testing.h"
#include "weir/ops.h"

namespace weir::executor {
namespace {

const TaskId kAlice{"alice", 0};
const TaskId kBob{"bob", 0};

VariableOptions Untrained() {
  VariableOptions options;
  options.trainable = false;
  return options;
}

/// A chain that hops between two tasks, with a ticket and a gradient on the way.
struct Hops {
  Graph graph;
  Wanted signature;

  Hops() {
    weir::Variable w, steps;
    Node ticket;
    {
      const DeviceScope scope(graph, "/job:bob/task:0");
      w = graph.Variable("w", Ones({4, 4}));
      steps = graph.Variable("global_step", Zeros({}, at::kLong), Untrained());
    }
    ticket.name = "ticket";
    ticket.op = "Ticket";
    ticket.inputs = {{steps.handle().node(), 0}};
    ticket.attrs["limit"] = std::int64_t{-1};
    ticket.outputs = {{at::kLong, std::vector<std::int64_t>{}, false}};
    const Operation taken = graph.AddNode(std::move(ticket));
    Output value = graph.Placeholder("x", at::kFloat, {4, 4});
    for (int i = 0; i < 6; ++i) {
      const DeviceScope scope(graph, i % 2 == 0 ? "/job:alice/task:0" : "/job:bob/task:0");
      value = ops::tanh(ops::matmul(value, w));
    }
    const Output gradient = graph.Gradients(ops::sum(value), {w})[0];
    const Operation add = graph.AssignAdd(w, gradient);
    graph.AddControlEdge(taken, add);
    Node complete;
    complete.name = "complete";
    complete.op = "CompleteStep";
    complete.inputs = {{steps.handle().node(), 0}, {add.node(), Edge::kControl}};
    graph.AddNode(std::move(complete));
    signature = {.feeds = {"x"}, .fetches = {value.name()}, .targets = {"complete"}};
  }
};

TEST(StepStressTest, EachPartitionIsDoneOnceHoweverTheStepIsAborted) {
  constexpr std::uint64_t kSteps = 300;
  Hops hops;
  ASSERT_TRUE(hops.graph.status().ok()) << hops.graph.status();
  TestCluster cluster({kAlice, kBob});
  cluster.Initialize(hops.graph);
  const TestPlan plan = cluster.Plan(hops.graph, hops.signature);
  const std::unique_ptr<Scheduler> pool = NewPoolScheduler(3);
  std::uint64_t completed = 0;
  for (std::uint64_t i = 0; i < kSteps; ++i) {
    TestStep step(plan, cluster.NextStep(), {at::ones({4, 4})});
    step.Start([&](std::function<void()> work) { pool->Post(std::move(work)); });
    std::thread aborter([&, i] {
      for (std::uint64_t yields = 0; yields < i % 32; ++yields) std::this_thread::yield();
      if (i % 8 != 0) step.rendezvous().Abort(absl::AbortedError("somebody said so"));
    });
    step.WaitUntilOver();
    aborter.join();
    EXPECT_EQ(step.done_calls(), (std::vector<int>{1, 1}));
    const absl::Status expected = i % 8 == 0 || step.status().ok()
                                      ? absl::OkStatus()
                                      : absl::AbortedError("somebody said so");
    EXPECT_EQ(step.status(), expected);
    if (step.ticket() != 0 && step.status().ok()) ++completed;
  }
  pool->Close();
  pool->Join();
  // A step may be aborted on alice when bob has completed it already.
  EXPECT_GE(cluster.variable("global_step").tickets().completed(), completed);
  EXPECT_LE(cluster.variable("global_step").tickets().completed(), kSteps);
  EXPECT_EQ(cluster.ValueOf("global_step").item<std::int64_t>(),
            static_cast<std::int64_t>(cluster.variable("global_step").tickets().completed()));
}

TEST(StepStressTest, ManyStepsInFlightCompleteExactlyTheLimit) {
  constexpr std::size_t kSteps = 40;
  Graph graph;
  weir::Variable steps;
  {
    const DeviceScope scope(graph, "/job:bob/task:0");
    steps = graph.Variable("global_step", Zeros({}, at::kLong), Untrained());
  }
  Node ticket;
  ticket.name = "ticket";
  ticket.op = "Ticket";
  ticket.inputs = {{steps.handle().node(), 0}};
  ticket.attrs["limit"] = std::int64_t{25};
  ticket.outputs = {{at::kLong, std::vector<std::int64_t>{}, false}};
  const Output taken(&graph, graph.AddNode(std::move(ticket)).node(), 0);
  std::atomic<int> calls = 0;
  const Output flaky = graph.Function(
      [&](const std::vector<at::Tensor>& inputs) {
        if (++calls % 5 == 0) throw std::runtime_error("flaky");
        return inputs;
      },
      {taken}, {{at::kLong, std::vector<std::int64_t>{}, false}})[0];
  Node complete;
  complete.name = "complete";
  complete.op = "CompleteStep";
  complete.inputs = {{steps.handle().node(), 0}, {flaky.node(), Edge::kControl}};
  graph.AddNode(std::move(complete));
  TestCluster cluster({kAlice, kBob});
  cluster.Initialize(graph);
  const TestPlan plan = cluster.Plan(graph, {.targets = {"complete"}});
  const std::unique_ptr<Scheduler> pool = NewPoolScheduler(3);
  std::vector<std::unique_ptr<TestStep>> running;
  for (std::size_t i = 0; i < kSteps; ++i) {
    running.push_back(
        std::make_unique<TestStep>(plan, cluster.NextStep(), std::vector<at::Tensor>{}));
    running.back()->Start([&](std::function<void()> work) { pool->Post(std::move(work)); });
  }
  int ok = 0, refused = 0;
  for (const auto& step : running) {
    step->WaitUntilOver();
    ok += step->status().ok() ? 1 : 0;
    refused += absl::IsOutOfRange(step->status()) ? 1 : 0;
  }
  pool->Close();
  pool->Join();
  EXPECT_EQ(ok, 25);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(cluster.ValueOf("global_step").item<std::int64_t>(), 25);
}

}  // namespace
}  // namespace weir::executor
