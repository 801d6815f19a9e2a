#include "base/sim_scheduler.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

/// The order in which ten pieces of work, each of which posts one more, have run.
std::string Order(std::uint64_t seed) {
  SimScheduler scheduler(seed);
  std::string order;
  for (char name = 'a'; name < 'k'; ++name) {
    scheduler.Post([&, name] {
      order += name;
      scheduler.Post([&, name] { order += static_cast<char>(name - 'a' + 'A'); });
    });
  }
  scheduler.RunUntilIdle();
  return order;
}

RC_GTEST_PROP(SimSchedulerProperty, SeedAloneDecidesTheOrder, (std::uint64_t seed)) {
  const std::string order = Order(seed);
  RC_ASSERT(order == Order(seed));
  RC_ASSERT(order.size() == 20U);
  for (char name = 'a'; name < 'k'; ++name) {
    RC_ASSERT(order.find(name) < order.find(static_cast<char>(name - 'a' + 'A')));
  }
}

TEST(SimSchedulerTest, OtherSeedsGiveOtherOrders) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed) orders.insert(Order(seed));
  EXPECT_GT(orders.size(), 15U);
}

RC_GTEST_PROP(SimSchedulerProperty, TimersRunAtTheirTimeInOrder,
              (std::uint64_t seed, const std::vector<std::uint16_t>& delays)) {
  SimScheduler scheduler(seed);
  const TimePoint start = scheduler.Now();
  std::vector<Duration> ran;
  for (const std::uint16_t delay : delays) {
    const TimePoint when = start + seconds(delay);
    scheduler.PostAt(when, [&, when] {
      RC_ASSERT(scheduler.Now() == when);
      ran.push_back(when - start);
    });
  }
  while (scheduler.Step()) {
  }
  RC_ASSERT(ran.size() == delays.size());
  RC_ASSERT(std::is_sorted(ran.begin(), ran.end()));
}

TEST(SimSchedulerTest, RunUntilIdleLetsNoTimePass) {
  SimScheduler scheduler(1);
  const TimePoint start = scheduler.Now();
  int ran = 0;
  scheduler.PostAt(start, [&] { ran += 1; });
  scheduler.PostAt(start - seconds(1), [&] { ran += 10; });
  scheduler.PostAt(start + Duration(1), [&] { ran += 100; });
  scheduler.RunUntilIdle();
  EXPECT_EQ(ran, 11);
  EXPECT_EQ(scheduler.Now(), start);
}

TEST(SimSchedulerTest, RunForRunsWhatIsDueAndMovesTheClock) {
  SimScheduler scheduler(1);
  const TimePoint start = scheduler.Now();
  int beats = 0;
  std::function<void()> beat = [&] {
    ++beats;
    scheduler.PostAt(scheduler.Now() + seconds(1), beat);
  };
  beat();
  scheduler.RunFor(hours(1) + std::chrono::milliseconds(500));
  EXPECT_EQ(beats, 3601);
  EXPECT_EQ(scheduler.Now(), start + hours(1) + std::chrono::milliseconds(500));
}

TEST(SimSchedulerTest, CancelledTimerDoesNotMoveTheClock) {
  SimScheduler scheduler(1);
  const TimePoint start = scheduler.Now();
  scheduler.PostAt(start + hours(1), [] { FAIL(); })->Cancel();
  EXPECT_FALSE(scheduler.Step());
  EXPECT_EQ(scheduler.Now(), start);
}

TEST(SimSchedulerTest, WorkDueAtTheSameTimeCanStillCancel) {
  SimScheduler scheduler(1);
  int ran = 0;
  std::shared_ptr<Timer> a;
  std::shared_ptr<Timer> b;
  const TimePoint when = scheduler.Now() + seconds(1);
  a = scheduler.PostAt(when, [&] {
    ++ran;
    b->Cancel();
  });
  b = scheduler.PostAt(when, [&] {
    ++ran;
    a->Cancel();
  });
  scheduler.RunFor(seconds(2));
  EXPECT_EQ(ran, 1);
}

TEST(SimSchedulerTest, CloseDropsTimersAndLaterWork) {
  SimScheduler scheduler(1);
  int ran = 0;
  scheduler.Post([&] { ++ran; });
  scheduler.PostAt(scheduler.Now() + seconds(1), [&] { ran += 10; });
  scheduler.Close();
  scheduler.Post([&] { ran += 100; });
  EXPECT_NE(scheduler.PostAt(scheduler.Now(), [&] { ran += 1000; }), nullptr);
  scheduler.Join();
  EXPECT_FALSE(scheduler.Step());
  EXPECT_EQ(ran, 1);
}

TEST(SimDriverTest, PumpsTheSchedulerUntilDone) {
  SimScheduler scheduler(1);
  const auto driver = scheduler.NewDriver();
  bool done = false;
  scheduler.PostAt(scheduler.Now() + seconds(5), [&] { driver->Post([&] { done = true; }); });
  EXPECT_TRUE(driver->RunUntil([&] { return done; }, scheduler.Now() + seconds(5)));
}

TEST(SimDriverTest, GivesUpAtTheDeadlineWithNothingLeftToRun) {
  SimScheduler scheduler(1);
  const auto driver = scheduler.NewDriver();
  const TimePoint deadline = scheduler.Now() + seconds(5);
  bool late = false;
  scheduler.PostAt(deadline + Duration(1), [&] { late = true; });
  EXPECT_FALSE(driver->RunUntil([] { return false; }, deadline));
  EXPECT_EQ(scheduler.Now(), deadline);
  EXPECT_FALSE(late);
}

TEST(SimDriverTest, LeavesTheClockAloneWithoutADeadline) {
  SimScheduler scheduler(1);
  const TimePoint start = scheduler.Now();
  EXPECT_FALSE(scheduler.NewDriver()->RunUntil([] { return false; }, TimePoint::max()));
  EXPECT_EQ(scheduler.Now(), start);
}

TEST(SimDriverTest, ItsWorkRunsOnlyWhileItWaits) {
  SimScheduler scheduler(1);
  const auto driver = scheduler.NewDriver();
  bool ran = false;
  driver->Post([&] { ran = true; });
  scheduler.RunFor(seconds(1));
  EXPECT_FALSE(ran);
  EXPECT_TRUE(driver->RunUntil([&] { return ran; }, scheduler.Now()));
}

RC_GTEST_PROP(SimDriverProperty, KeepsTheOrderOfItsWork, (std::uint64_t seed)) {
  SimScheduler scheduler(seed);
  const auto driver = scheduler.NewDriver();
  std::vector<int> order;
  for (int i = 0; i < 20; ++i) {
    scheduler.Post([] {});
    driver->Post([&, i] { order.push_back(i); });
  }
  RC_ASSERT(driver->RunUntil([&] { return order.size() == 20; }, scheduler.Now()));
  RC_ASSERT(std::is_sorted(order.begin(), order.end()));
}

RC_GTEST_PROP(SimDriverProperty, DoesOneThingAtATimeWhenWaitsNest, (std::uint64_t seed)) {
  SimScheduler scheduler(seed);
  const auto outer = scheduler.NewDriver();
  const auto inner = scheduler.NewDriver();
  bool in_first = false;
  bool second_ran = false;
  outer->Post([&] {
    in_first = true;
    bool done = false;
    inner->Post([&] { done = true; });
    RC_ASSERT(inner->RunUntil([&] { return done; }, scheduler.Now()));
    RC_ASSERT(!inner->RunUntil([] { return false; }, scheduler.Now()));
    in_first = false;
  });
  outer->Post([&] {
    RC_ASSERT(!in_first);
    second_ran = true;
  });
  RC_ASSERT(outer->RunUntil([&] { return second_ran; }, scheduler.Now()));
}

}  // namespace
}  // namespace weir
