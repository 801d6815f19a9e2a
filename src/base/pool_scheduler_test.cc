#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/scheduler.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TimePoint In(Duration duration) {
  return std::chrono::steady_clock::now() + duration;
}

TEST(PoolSchedulerTest, RunsEverythingThatIsPosted) {
  const auto scheduler = NewPoolScheduler(3);
  constexpr int kPosters = 4;
  constexpr int kEach = 500;
  std::latch ran(kPosters * kEach);
  std::vector<std::thread> posters;
  for (int i = 0; i < kPosters; ++i) {
    posters.emplace_back([&] {
      for (int j = 0; j < kEach; ++j) scheduler->Post([&] { ran.count_down(); });
    });
  }
  ran.wait();
  for (std::thread& poster : posters) poster.join();
}

TEST(PoolSchedulerTest, NeverRunsWorkInsideTheCall) {
  const auto scheduler = NewPoolScheduler(1);
  Mutex mutex;
  std::latch ran(1);
  {
    MutexLock lock(mutex);
    scheduler->Post([&] {
      MutexLock inner(mutex);  // would deadlock inside the call
      ran.count_down();
    });
  }
  ran.wait();
}

TEST(PoolSchedulerTest, OneThreadKeepsTheOrder) {
  const auto scheduler = NewPoolScheduler(1);
  std::vector<int> order;
  std::latch ran(100);
  for (int i = 0; i < 100; ++i) {
    scheduler->Post([&, i] {
      order.push_back(i);
      ran.count_down();
    });
  }
  ran.wait();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(PoolSchedulerTest, TimersRunInTheirOrderAndNotEarly) {
  const auto scheduler = NewPoolScheduler(1);
  std::vector<int> order;
  std::latch ran(2);
  const TimePoint late = In(milliseconds(4));
  const TimePoint early = In(milliseconds(2));
  const auto check = [&](TimePoint when, int value) {
    return [&, when, value] {
      EXPECT_GE(scheduler->Now(), when);
      order.push_back(value);
      ran.count_down();
    };
  };
  scheduler->PostAt(late, check(late, 2));
  scheduler->PostAt(early, check(early, 1));  // the timer thread sleeps for a later one by now
  ran.wait();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(PoolSchedulerTest, CancelledTimerDoesNotRun) {
  const auto scheduler = NewPoolScheduler(1);
  std::atomic<bool> cancelled_ran = false;
  std::latch ran(1);
  const TimePoint when = In(milliseconds(2));
  scheduler->PostAt(when, [&] { cancelled_ran = true; })->Cancel();
  scheduler->PostAt(when, [&] { ran.count_down(); });
  ran.wait();
  EXPECT_FALSE(cancelled_ran);
}

TEST(PoolSchedulerTest, CloseRunsWhatWasPostedAndDropsTheRest) {
  const auto scheduler = NewPoolScheduler(2);
  std::atomic<int> ran = 0;
  auto owned = std::make_shared<int>(0);
  for (int i = 0; i < 100; ++i) scheduler->Post([&] { ++ran; });
  const auto timer = scheduler->PostAt(In(hours(1)), [&ran, owned] { ran += 1000; });
  scheduler->Close();
  scheduler->Post([&ran, owned] { ran += 1000; });
  const auto late = scheduler->PostAt(In(Duration(0)), [&ran, owned] { ran += 1000; });
  EXPECT_NE(late, nullptr);
  scheduler->Join();
  EXPECT_EQ(ran, 100);
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(PoolDriverTest, RunsPostedWorkOnTheWaitingThreadInOrder) {
  const auto scheduler = NewPoolScheduler(1);
  const auto driver = scheduler->NewDriver();
  std::vector<int> order;
  const std::thread::id waiter = std::this_thread::get_id();
  scheduler->Post([&] {
    for (int i = 0; i < 100; ++i) {
      driver->Post([&, i] {
        EXPECT_EQ(std::this_thread::get_id(), waiter);
        order.push_back(i);
      });
    }
  });
  EXPECT_TRUE(driver->RunUntil([&] { return order.size() == 100; }, In(hours(1))));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(PoolDriverTest, SleepsAndWakes) {
  const auto scheduler = NewPoolScheduler(1);
  const auto driver = scheduler->NewDriver();
  bool done = false;
  // Far beyond the time it polls.
  scheduler->PostAt(In(milliseconds(5)), [&] { driver->Post([&] { done = true; }); });
  EXPECT_TRUE(driver->RunUntil([&] { return done; }, TimePoint::max()));
}

TEST(PoolDriverTest, GivesUpAtTheDeadline) {
  const auto scheduler = NewPoolScheduler(1);
  const auto driver = scheduler->NewDriver();
  const TimePoint deadline = In(milliseconds(3));
  EXPECT_FALSE(driver->RunUntil([] { return false; }, deadline));
  EXPECT_GE(std::chrono::steady_clock::now(), deadline);
}

TEST(PoolDriverTest, LooksAtDoneFirst) {
  const auto driver = NewPoolScheduler(1)->NewDriver();
  EXPECT_TRUE(driver->RunUntil([] { return true; }, TimePoint::min()));
}

TEST(PoolDriverTest, EmptyWorkMakesItLookAgain) {
  const auto scheduler = NewPoolScheduler(1);
  const auto driver = scheduler->NewDriver();
  std::atomic<bool> done = false;
  scheduler->PostAt(In(milliseconds(2)), [&] {
    done = true;
    driver->Post(nullptr);
  });
  EXPECT_TRUE(driver->RunUntil([&] { return done.load(); }, In(hours(1))));
}

TEST(PoolDriverTest, ManyThreadsPostWhileItPollsAndSleeps) {
  const auto scheduler = NewPoolScheduler(3);
  const auto driver = scheduler->NewDriver();
  constexpr int kAll = 3000;
  int ran = 0;
  for (int i = 0; i < kAll; ++i) {
    scheduler->Post([&] { driver->Post([&] { ++ran; }); });
  }
  EXPECT_TRUE(driver->RunUntil([&] { return ran == kAll; }, In(hours(1))));
}

}  // namespace
}  // namespace weir
