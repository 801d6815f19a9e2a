#include "transport/inproc/network.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/sim_scheduler.h"
#include "transport/conformance_testing.h"

namespace weir::transport::inproc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Two transports and one connection on a network in virtual time.
class Line {
 public:
  explicit Line(std::uint64_t seed)
      : scheduler(seed),
        network(&scheduler, seed),
        near_handler(std::make_shared<Recorder>(waiter)),
        far_handler(std::make_shared<Recorder>(waiter)) {
    listener = *server->Listen("inproc", 7, [this](std::shared_ptr<Connection> connection) {
      far = connection;
      connection->Start(far_handler);
    });
    client->Dial("inproc:7", scheduler.Now() + seconds(10), [this](auto connection) {
      near = *connection;
      near->Start(near_handler);
    });
    EXPECT_TRUE(waiter->Wait([this] { return near != nullptr && far != nullptr; }));
  }

  void Send(std::uint64_t step, std::size_t payload = 100) {
    near->Send({.header = {.type = FrameType::kTensor, .step = step},
                .body = "body",
                .payload = NewPatternBuffer(payload, step)});
  }

  std::vector<std::uint64_t> Steps() const {
    std::vector<std::uint64_t> steps;
    for (const Received& received : far_handler->frames()) {
      EXPECT_TRUE(HasPattern(received.payload, received.header.step));
      steps.push_back(received.header.step);
    }
    return steps;
  }

  SimScheduler scheduler;
  Network network;
  std::shared_ptr<Waiter> waiter = std::make_shared<Waiter>(&scheduler);
  std::shared_ptr<Recorder> near_handler;
  std::shared_ptr<Recorder> far_handler;
  std::unique_ptr<Transport> server = network.NewTransport();
  std::unique_ptr<Transport> client = network.NewTransport();
  std::unique_ptr<Listener> listener;
  std::shared_ptr<Connection> near;
  std::shared_ptr<Connection> far;
};

TEST(NetworkTest, AddressesNameThePort) {
  Line line(1);
  EXPECT_EQ(line.listener->Address(), "inproc:7");
  EXPECT_EQ(line.near->PeerAddress(), "inproc:7");
  EXPECT_EQ(line.far->PeerAddress(), "inproc:client-1");
}

RC_GTEST_PROP(NetworkProperty, DelayIsWithinItsBoundsAndKeepsTheOrder, (std::uint64_t seed)) {
  Line line(seed);
  line.network.SetFaults({.delay_min = milliseconds(10), .delay_max = milliseconds(30)});
  for (std::uint64_t step = 0; step < 20; ++step) line.Send(step);
  line.scheduler.RunFor(milliseconds(9));
  RC_ASSERT(line.Steps().empty());
  line.scheduler.RunFor(milliseconds(21));
  const std::vector<std::uint64_t> steps = line.Steps();
  RC_ASSERT(steps.size() == 20U);
  RC_ASSERT(std::is_sorted(steps.begin(), steps.end()));
}

RC_GTEST_PROP(NetworkProperty, SplitFramesArriveWhole, (std::uint64_t seed)) {
  Line line(seed);
  line.network.SetFaults({.split = 1});
  for (std::uint64_t step = 0; step < 20; ++step) line.Send(step, step * 10);
  line.scheduler.RunUntilIdle();
  RC_ASSERT(line.Steps().size() == 20U);
}

/// Whatever is lost, what arrived before is a prefix of what was sent, and both ends learn of it.
RC_GTEST_PROP(NetworkProperty, LossCutsTheStreamOnce, (std::uint64_t seed, bool inside)) {
  Line line(seed);
  line.network.SetFaults(
      {.delay_max = milliseconds(5), .lose = inside ? 0 : 0.2, .lose_inside = inside ? 0.2 : 0});
  for (std::uint64_t step = 0; step < 100; ++step) line.Send(step);
  RC_ASSERT(line.far_handler->WaitForClose());
  RC_ASSERT(line.near_handler->WaitForClose());
  for (const auto& handler : {line.near_handler, line.far_handler}) {
    RC_ASSERT(handler->reason().code() == absl::StatusCode::kUnavailable);
  }
  const std::vector<std::uint64_t> steps = line.Steps();
  RC_ASSERT(steps.size() < 100U);
  for (std::size_t i = 0; i < steps.size(); ++i) RC_ASSERT(steps[i] == i);
}

TEST(NetworkTest, SeedRepeatsWhatHappened) {
  const auto run = [](std::uint64_t seed) {
    Line line(seed);
    line.network.SetFaults(
        {.delay_max = milliseconds(50), .split = 0.2, .duplicate = 0.2, .lose = 0.02});
    for (std::uint64_t step = 0; step < 50; ++step) line.Send(step);
    line.scheduler.RunFor(seconds(1));
    std::string trace;
    for (const std::uint64_t step : line.Steps()) absl::StrAppend(&trace, step, ",");
    return trace;
  };
  EXPECT_EQ(run(3), run(3));
  EXPECT_NE(run(3), run(4));
}

TEST(NetworkTest, FateFunctionChoosesTheFrame) {
  Line line(1);
  line.network.SetFateFunction([](const FrameHeader& header) {
    return header.step == 1 ? Fate::kDuplicate : Fate::kDeliver;
  });
  for (std::uint64_t step = 0; step < 3; ++step) line.Send(step);
  line.scheduler.RunUntilIdle();
  EXPECT_EQ(line.Steps(), (std::vector<std::uint64_t>{0, 1, 1, 2}));
}

TEST(NetworkTest, LoseAfterDeliversTheFrameThatIsNeverAnswered) {
  Line line(1);
  line.network.SetFateFunction([](const FrameHeader& header) {
    return header.step == 1 ? Fate::kLoseAfter : Fate::kDeliver;
  });
  for (std::uint64_t step = 0; step < 3; ++step) line.Send(step);
  EXPECT_TRUE(line.near_handler->WaitForClose());
  EXPECT_EQ(line.Steps(), (std::vector<std::uint64_t>{0, 1}));
}

TEST(NetworkTest, LostConnectionsCanBeMadeAnew) {
  Line line(1);
  line.Send(1);
  line.network.LoseConnections("inproc:8");
  line.scheduler.RunUntilIdle();
  EXPECT_EQ(line.near_handler->closed_count(), 0);
  line.network.LoseConnections("inproc:7");
  line.scheduler.RunUntilIdle();
  for (const auto& handler : {line.near_handler, line.far_handler}) {
    ASSERT_EQ(handler->closed_count(), 1);
    EXPECT_EQ(handler->reason().code(), absl::StatusCode::kUnavailable);
  }
  line.far_handler = std::make_shared<Recorder>(line.waiter);
  bool again = false;
  line.client->Dial("inproc:7", line.scheduler.Now() + seconds(1),
                    [&](auto connection) { again = connection.ok(); });
  EXPECT_TRUE(line.waiter->Wait([&] { return again; }));
}

TEST(NetworkTest, SlowWireExceedsTheDialsDeadline) {
  Line line(1);
  line.network.SetFaults({.delay_min = seconds(5), .delay_max = seconds(5)});
  absl::Status status;
  const TimePoint deadline = line.scheduler.Now() + seconds(2);
  line.client->Dial("inproc:7", deadline, [&](auto connection) {
    status = connection.status();
    EXPECT_EQ(line.scheduler.Now(), deadline);
  });
  line.scheduler.RunFor(seconds(10));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(NetworkTest, BytesAreCopiedWhenTheyAreDelivered) {
  Line line(1);
  Buffer payload = NewPatternBuffer(100, 1);
  line.near->Send(
      {.header = {.type = FrameType::kTensor, .step = 2}, .body = "", .payload = payload});
  const Buffer changed = NewPatternBuffer(100, 2);
  std::copy_n(changed.data, 100, payload.data);
  line.scheduler.RunUntilIdle();
  EXPECT_EQ(line.Steps(), std::vector<std::uint64_t>{2});
}

}  // namespace
}  // namespace weir::transport::inproc
