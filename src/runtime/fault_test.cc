// What users see when tasks are missing, die, come back, or are not who they are taken for.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cluster_testing.h"
#include "weir/ops.h"
#include "weir/strategy.h"

namespace weir::runtime {
namespace {

using testing::HasSubstr;

/// A counter on ps:0 and a sum computed on the session's task.
struct Counter {
  Counter() {
    DeviceScope scope(graph, "/job:ps/task:0");
    value = graph.Variable("counter", Zeros({}));
    add = graph.AssignAdd(value, graph.Const(at::ones({})));
  }
  Graph graph;
  Variable value;
  Operation add;
};

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

TEST(FaultTest, AMissingTaskIsNamedWithItsAddressAtTheStartDeadline) {  // C1-01, C4-07
  TestCluster cluster(1, 1);
  cluster.Start({"worker", 0});
  Counter counter;
  const TimePoint began = cluster.scheduler().Now();
  const auto session =
      cluster.worker(0).OpenSession(counter.graph, {.start_timeout = std::chrono::seconds(15)});
  EXPECT_THAT(Message(session.status()), HasSubstr("ps:0 (127.0.0.1:7000)"));
  const auto waited = cluster.scheduler().Now() - began;
  EXPECT_GE(waited, std::chrono::seconds(15));
  EXPECT_LE(waited, std::chrono::seconds(17));
}

TEST(FaultTest, AWaitSaysEveryFiveSecondsForWhom) {  // C1-01, C9-02
  std::vector<std::string> lines;
  TestCluster cluster(1, 1);
  cluster.LogTo(Logger::ToSink(LogLevel::kInfo,
                               [&](LogLevel, std::string_view line) { lines.emplace_back(line); }));
  cluster.Start({"worker", 0});
  Counter counter;
  const SessionOptions options{.start_timeout = std::chrono::seconds(17)};
  EXPECT_FALSE(cluster.worker(0).OpenSession(counter.graph, options).ok());
  const std::string who = "waiting for ps:0 (127.0.0.1:7000): ";
  EXPECT_THAT(lines, testing::ElementsAre(who + "5 s so far, giving up in 12 s",
                                          who + "10 s so far, giving up in 7 s",
                                          who + "15 s so far, giving up in 2 s"));
}

/// One weight on the ps and a training step on `worker`, of ten in all.
struct Training {
  explicit Training(int worker) {
    {
      DeviceScope scope(graph, "/job:ps/task:0");
      GlobalStep(graph);
      weight = graph.Variable("weight", Zeros({}));
    }
    DeviceScope scope(graph, TaskId{"worker", worker}.DevicePrefix());
    step = NewAsyncStrategy({.stop_at_step = 10})->Minimize(Sgd{}, ops::sum(weight));
  }
  Graph graph;
  Variable weight;
  Operation step;
};

TEST(FaultTest, AWorkerThatComesLateTakesPartAtOnceOrHearsThatItIsOver) {  // C1-12
  TestCluster cluster(1, 2);
  cluster.Start({"ps", 0});
  cluster.Start({"worker", 0});
  Training first(0);
  auto early = cluster.worker(0).OpenSession(first.graph);
  ASSERT_TRUE(early.ok()) << early.status();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(early->Run({}, {}, {first.step}).ok());
  const auto join = [&] {
    const TimePoint began = cluster.scheduler().Now();
    cluster.Start({"worker", 1});
    Training second(1);
    auto late = cluster.worker(1).OpenSession(second.graph);
    EXPECT_TRUE(late.ok()) << late.status();
    auto run = late->Run({}, {}, {second.step});
    EXPECT_LT(cluster.scheduler().Now() - began, std::chrono::seconds(1));
    EXPECT_EQ(late->ShouldStop(), !run.ok());
    late->Close().IgnoreError();
    cluster.Kill({"worker", 1});
    return run;
  };
  const auto in_time = join();
  ASSERT_TRUE(in_time.ok()) << in_time.status();
  EXPECT_EQ(in_time->step, 6u);
  while (!early->ShouldStop()) ASSERT_TRUE(early->Run({}, {}, {first.step}).ok());
  const auto too_late = join();
  EXPECT_TRUE(absl::IsOutOfRange(too_late.status())) << too_late.status();
}

TEST(FaultTest, ATaskThatComesLateIsWaitedFor) {
  TestCluster cluster(1, 1);
  cluster.Start({"worker", 0});
  cluster.scheduler().PostAt(cluster.scheduler().Now() + std::chrono::seconds(10),
                             [&] { cluster.Start({"ps", 0}); });
  Counter counter;
  const TimePoint began = cluster.scheduler().Now();
  auto session = cluster.worker(0).OpenSession(counter.graph);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(session->Run({}, {}, {counter.add}).ok());
  EXPECT_LE(cluster.scheduler().Now() - began, std::chrono::seconds(11));
}

TEST(FaultTest, OnlyTasksThatAreNeededAreWaitedFor) {
  TestCluster cluster(2, 3);
  cluster.Start({"worker", 2});
  cluster.Start({"ps", 0});
  Counter counter;
  auto session = cluster.worker(2).OpenSession(counter.graph);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(session->Run({}, {}, {counter.add}).ok());
}

TEST(FaultTest, ALostPsEndsTheStepAndARestartedOneIsTold) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Counter counter;
  auto session = cluster.worker(0).OpenSession(counter.graph);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Run({}, {}, {counter.add}).ok());
  cluster.Kill({"ps", 0});
  const auto lost = session->Run({}, {}, {counter.add});
  EXPECT_EQ(lost.status().code(), absl::StatusCode::kUnavailable) << lost.status();
  EXPECT_THAT(Message(lost.status()), HasSubstr("ps:0 (127.0.0.1:7000)"));
  cluster.Start({"ps", 0});
  const auto restarted = session->Run({}, {}, {counter.add});
  EXPECT_EQ(restarted.status().code(), absl::StatusCode::kAborted)
      << "an empty ps must not be taken for the old one: " << restarted.status();
  auto again = cluster.worker(0).OpenSession(counter.graph);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->Run({}, {}, {counter.add}).ok());
}

TEST(FaultTest, ALostConnectionIsUnavailableOnceAndTheNextStepConnectsAnew) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Counter counter;
  auto session = cluster.worker(0).OpenSession(counter.graph);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Run({}, {}, {counter.add}).ok());
  cluster.network().LoseConnections(cluster.ps(0).data_address());
  absl::Status status;
  int failures = 0;
  for (int i = 0; i < 3; ++i) {
    status = session->Run({}, {}, {counter.add}).status();
    if (!status.ok()) ++failures;
  }
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_LE(failures, 1);
}

TEST(FaultTest, AWorkerThatDiesEndsItsOwnStepsOnly) {
  TestCluster cluster(1, 2);
  cluster.StartAll();
  Counter first, second;
  auto dying = cluster.worker(0).OpenSession(first.graph);
  auto living = cluster.worker(1).OpenSession(second.graph);
  ASSERT_TRUE(dying.ok() && living.ok());
  ASSERT_TRUE(dying->Run({}, {}, {first.add}).ok());
  ASSERT_TRUE(dying->Close().ok());
  cluster.Kill({"worker", 0});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(living->Run({}, {}, {second.add}).ok());
  const auto read = living->Run({}, {second.value});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ((*read)[0].item<double>(), 11);
}

TEST(FaultTest, AnotherClusterIsRefusedOnBothPlanes) {
  TestCluster cluster(1, 1);
  cluster.Start({"ps", 0});
  auto stranger = cluster.TryStart({"worker", 0}, "another job");
  ASSERT_TRUE(stranger.ok());
  Counter counter;
  const auto session = (*stranger)->OpenSession(counter.graph);
  EXPECT_EQ(session.status().code(), absl::StatusCode::kFailedPrecondition) << session.status();
  EXPECT_THAT(Message(session.status()), HasSubstr("belongs to cluster"));
  (*stranger)->Close();
}

TEST(FaultTest, TheSameTaskTwiceIsRefused) {  // C1-07
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Counter counter;
  auto session = cluster.worker(0).OpenSession(counter.graph);
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::Status second = cluster.TryStart({"worker", 0}).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kUnavailable) << second;
  EXPECT_THAT(Message(second), HasSubstr("127.0.0.1:7100"));
  EXPECT_THAT(Message(second), HasSubstr("worker:0 runs there already, process "));
  EXPECT_TRUE(session->Run({}, {}, {counter.add}).ok()) << "the first one is none the worse";
}

TEST(FaultTest, ReadingWhatWasNeverInitialisedIsAFailedPrecondition) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Counter counter;
  auto session = cluster.worker(0).OpenSession(counter.graph, {.initialize = false});
  ASSERT_TRUE(session.ok()) << session.status();
  const auto read = session->Run({}, {counter.value});
  EXPECT_EQ(read.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(read.status()), HasSubstr("Attempting to use uninitialized value counter"));
}

TEST(FaultTest, ASharedVariableOfAnotherShapeIsRefused) {
  TestCluster cluster(1, 2);
  cluster.StartAll();
  Counter counter;
  ASSERT_TRUE(cluster.worker(0).OpenSession(counter.graph).ok());
  Graph other;
  {
    DeviceScope scope(other, "/job:ps/task:0");
    other.Variable("counter", Zeros({3}));
  }
  const auto session = cluster.worker(1).OpenSession(other);
  EXPECT_EQ(session.status().code(), absl::StatusCode::kInvalidArgument) << session.status();
  EXPECT_THAT(Message(session.status()), HasSubstr("counter"));
}

TEST(FaultTest, FeedsAreChecked) {
  TestCluster cluster(0, 1);
  cluster.StartAll();
  Graph graph;
  const auto x = graph.Placeholder("x", at::kFloat, {-1, 3});
  const auto y = ops::relu(x);
  auto session = cluster.worker(0).OpenSession(graph);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(session->Run({{x, at::ones({5, 3})}}, {y}).ok());
  const auto shape = session->Run({{x, at::ones({5, 4})}}, {y});
  EXPECT_EQ(shape.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(shape.status()), HasSubstr("'x'"));
  EXPECT_EQ(session->Run({{x, at::ones({5, 3}, at::kDouble)}}, {y}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(session->Run({}, {y}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(FaultTest, AHandleOfAnotherGraphIsRefusedThoughItsNumberIsKnown) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Counter mine, other;
  auto session = cluster.worker(0).OpenSession(mine.graph);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Run({}, {mine.value}, {mine.add}).ok());
  for (const auto& run :
       {session->Run({}, {other.value}, {mine.add}), session->Run({}, {mine.value}, {other.add}),
        session->Run({}, {Output()}), session->Run({}, {}, {Operation()})}) {
    EXPECT_EQ(run.status().code(), absl::StatusCode::kInvalidArgument) << run.status();
  }
}

TEST(FaultTest, APlanThatWasForgottenForAnotherIsMadeAnew) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Counter counter;
  auto session = cluster.worker(0).OpenSession(counter.graph, {.max_plans = 1});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Run({}, {}, {counter.add}).ok());
  ASSERT_TRUE(session->DumpPlan({}, {counter.value}, {}).ok());
  const auto run = session->Run({}, {}, {counter.add});
  EXPECT_TRUE(run.ok()) << run.status();
}

TEST(FaultTest, AFunctionInAClientsGraphIsRefusedAtOnce) {
  TestCluster cluster(0, 1);
  cluster.StartAll();
  Graph graph;
  graph.Function([](const std::vector<at::Tensor>& x) { return x; }, {graph.Const(at::ones({2}))},
                 {{at::kFloat, std::vector<std::int64_t>{2}, false}}, "mine");
  const auto session = cluster.Connect({"worker", 0}, graph);
  EXPECT_EQ(session.status().code(), absl::StatusCode::kInvalidArgument) << session.status();
  EXPECT_THAT(Message(session.status()), HasSubstr("'mine'"));
}

TEST(FaultTest, AfterCloseASessionSaysSo) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Counter counter;
  auto session = cluster.worker(0).OpenSession(counter.graph);
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE(session->Close().ok());
  const auto run = session->Run({}, {}, {counter.add});
  EXPECT_EQ(run.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(run.status()), HasSubstr("Session is closed."));
}

TEST(FaultTest, AClosedClientFreesItsSession) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Counter counter;
  {
    auto session = cluster.Connect({"worker", 0}, counter.graph);
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE(session->Run({}, {}, {counter.add}).ok());
  }
  auto session = cluster.Connect({"worker", 0}, counter.graph);
  ASSERT_TRUE(session.ok()) << session.status();
  const auto read = session->Run({}, {counter.value});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)[0].item<double>(), 1);
}

TEST(FaultTest, AClientThatLosesItsConnectionGoesOnInItsSession) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Counter counter;
  auto session = cluster.Connect({"worker", 0}, counter.graph);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Run({}, {}, {counter.add}).ok());
  cluster.network().LoseConnections(cluster.worker(0).data_address());
  absl::Status status;
  int failures = 0;
  for (int i = 0; i < 3; ++i) {
    status = session->Run({}, {}, {counter.add}).status();
    if (!status.ok()) ++failures;
  }
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_LE(failures, 1);
}

TEST(FaultTest, AClientThatDoesNotComeBackLosesItsSession) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Counter counter;
  auto session = cluster.Connect({"worker", 0}, counter.graph);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Run({}, {}, {counter.add}).ok());
  cluster.network().LoseConnections(cluster.worker(0).data_address());
  const auto driver = cluster.scheduler().NewDriver();
  driver->RunUntil([] { return false; }, cluster.scheduler().Now() + std::chrono::seconds(70));
  const auto run = session->Run({}, {}, {counter.add});
  EXPECT_EQ(run.status().code(), absl::StatusCode::kAborted) << run.status();
  EXPECT_THAT(Message(run.status()), HasSubstr("is not found"));
}

TEST(FaultTest, AFeedThatCannotTravelCostsOnlyItsStep) {
  TestCluster cluster(0, 1);
  cluster.StartAll();
  Graph graph;
  const auto x = graph.Placeholder("x", at::kFloat, {-1});
  const auto y = ops::neg(x);
  auto session = cluster.Connect({"worker", 0}, graph);
  ASSERT_TRUE(session.ok()) << session.status();
  for (const at::Tensor& bad :
       {at::Tensor(), at::ones({3}).to_sparse(), at::zeros(std::vector<std::int64_t>(40, 1)),
        at::zeros({1}, at::kComplexHalf)}) {
    const auto run = session->Run({{x, bad}}, {y});
    EXPECT_EQ(run.status().code(), absl::StatusCode::kInvalidArgument) << run.status();
    EXPECT_THAT(Message(run.status()), HasSubstr("'x"));
  }
  const at::Tensor lazy = at::_neg_view(at::arange(3, at::kFloat));
  const auto run = session->Run({{x, lazy}}, {y});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_TRUE(at::equal((*run)[0], at::arange(3, at::kFloat)));
}

TEST(FaultTest, UnderDelaysAndShortReadsStepsComplete) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    TestCluster cluster(2, 2, seed);
    cluster.network().SetFaults({.delay_max = std::chrono::milliseconds(3), .split = 0.3});
    cluster.StartAll();
    Counter counter;
    auto session = cluster.worker(1).OpenSession(counter.graph);
    ASSERT_TRUE(session.ok()) << "seed " << seed << ": " << session.status();
    for (int i = 1; i <= 20; ++i) {
      ASSERT_TRUE(session->Run({}, {}, {counter.add}).ok()) << "seed " << seed;
    }
    const auto read = session->Run({}, {counter.value});
    ASSERT_TRUE(read.ok());
    EXPECT_EQ((*read)[0].item<double>(), 20) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weir::runtime
