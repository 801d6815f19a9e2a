#include "rpc/inproc/control_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "base/sim_scheduler.h"
#include "rpc/conformance_testing.h"

namespace weir::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

World OnThreads() {
  World world{.scheduler = NewPoolScheduler(8), .plane = nullptr};
  world.plane = Network().NewControlPlane(world.scheduler.get());
  return world;
}

World Simulated(std::uint64_t seed) {
  World world{.scheduler = std::make_unique<SimScheduler>(seed), .plane = nullptr};
  world.plane = Network().NewControlPlane(world.scheduler.get());
  return world;
}

INSTANTIATE_TEST_SUITE_P(
    Inproc, ControlPlaneConformance,
    ::testing::Values(WorldKind{"Threads", true, OnThreads},
                      WorldKind{"Simulated1", false, [] { return Simulated(1); }},
                      WorldKind{"Simulated2", false, [] { return Simulated(2); }}),
    KindName);

/// In virtual time, where every duration is exact.
class NetworkTest : public ::testing::Test {
 protected:
  void Serve() { server_ = plane_->Serve("ps0", 2222, &service_).value(); }

  void Announce(Duration time, bool wait_for_ready) {
    start_ = scheduler_.Now();
    client_->Announce({}, {scheduler_.Now() + time, wait_for_ready}, [this](absl::Status status) {
      EXPECT_FALSE(status_.has_value());
      status_ = std::move(status);
      took_ = scheduler_.Now() - start_;
    });
    EXPECT_FALSE(status_.has_value());
  }

  SimScheduler scheduler_{3};
  Network network_;
  FakeService service_;
  const std::unique_ptr<ControlPlane> plane_ = network_.NewControlPlane(&scheduler_);
  const std::shared_ptr<TaskClient> client_ = plane_->NewClient("ps0:2222");
  std::unique_ptr<ControlServer> server_;
  TimePoint start_;
  std::optional<absl::Status> status_;
  Duration took_ = Duration::zero();
};

TEST_F(NetworkTest, WhoWaitsLooksEveryTenMilliseconds) {
  Announce(seconds(10), true);
  scheduler_.RunFor(milliseconds(303));
  EXPECT_FALSE(status_.has_value());
  Serve();
  scheduler_.RunUntilIdle();
  EXPECT_FALSE(status_.has_value());
  scheduler_.RunFor(milliseconds(7));
  EXPECT_EQ(status_, absl::OkStatus());
  EXPECT_EQ(took_, milliseconds(310));
}

TEST_F(NetworkTest, WhoIsPokedLooksAtOnce) {
  Announce(seconds(10), true);
  scheduler_.RunFor(milliseconds(303));
  Serve();
  client_->Poke();
  scheduler_.RunUntilIdle();
  EXPECT_EQ(status_, absl::OkStatus());
  EXPECT_EQ(took_, milliseconds(303));
  scheduler_.RunFor(seconds(20));
  EXPECT_EQ(service_.calls, 1);
}

TEST_F(NetworkTest, TheDeadlineIsExact) {
  Announce(milliseconds(1234), true);
  scheduler_.RunFor(seconds(2));
  ASSERT_TRUE(status_.has_value());
  EXPECT_EQ(status_->code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(took_, milliseconds(1234));
}

TEST_F(NetworkTest, TheDelayCountsBothWays) {
  Serve();
  network_.SetDelay(milliseconds(40));
  Announce(seconds(1), false);
  scheduler_.RunFor(seconds(2));
  EXPECT_EQ(status_, absl::OkStatus());
  EXPECT_EQ(took_, milliseconds(80));
}

TEST_F(NetworkTest, ADelayBeyondTheDeadlineIsATimeout) {
  Serve();
  network_.SetDelay(milliseconds(40));
  Announce(milliseconds(60), false);
  scheduler_.RunFor(seconds(2));
  ASSERT_TRUE(status_.has_value());
  EXPECT_EQ(status_->code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(took_, milliseconds(60));
  EXPECT_EQ(service_.calls, 1);
}

TEST_F(NetworkTest, AnUnreachableTaskIsAsIfItWereNotThere) {
  Serve();
  network_.SetReachable("ps0:2222", false);
  Announce(seconds(1), false);
  scheduler_.RunUntilIdle();
  ASSERT_TRUE(status_.has_value());
  EXPECT_EQ(status_->code(), absl::StatusCode::kUnavailable);
  status_.reset();
  Announce(seconds(1), true);
  scheduler_.RunFor(milliseconds(500));
  network_.SetReachable("ps0:2222", true);
  scheduler_.RunFor(milliseconds(500));
  EXPECT_EQ(status_, absl::OkStatus());
}

TEST_F(NetworkTest, ATaskThatIsCutOffLosesTheCallsItAnswers) {
  Serve();
  service_.on_call = [this] { network_.SetReachable("ps0:2222", false); };
  Announce(seconds(1), true);
  scheduler_.RunUntilIdle();
  ASSERT_TRUE(status_.has_value());
  EXPECT_EQ(status_->code(), absl::StatusCode::kUnavailable);
}

TEST_F(NetworkTest, ACallThatArrivesAtAClosedServerIsRefused) {
  Serve();
  network_.SetDelay(milliseconds(40));
  Announce(seconds(1), true);
  scheduler_.RunFor(milliseconds(20));
  server_ = nullptr;
  scheduler_.RunFor(milliseconds(20));
  ASSERT_TRUE(status_.has_value());
  EXPECT_EQ(status_->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(service_.calls, 0);
}

TEST_F(NetworkTest, PlanesOnDifferentSchedulersMeet) {
  const std::unique_ptr<Scheduler> pool = NewPoolScheduler(1);
  const auto other_plane = network_.NewControlPlane(pool.get());
  const auto other_server = other_plane->Serve("worker0", 2222, &service_).value();
  const auto client = plane_->NewClient("worker0:2222");
  const auto driver = scheduler_.NewDriver();
  Latch served(pool.get());
  service_.on_call = [&] { served.Open(); };
  bool replied = false;
  client->Announce({}, {TimePoint::max(), false}, [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    replied = true;
  });
  scheduler_.RunUntilIdle();
  served.Wait();
  while (!replied) scheduler_.RunUntilIdle();
}

}  // namespace
}  // namespace weir::rpc
