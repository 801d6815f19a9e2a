#include "base/scoped_scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/sim_scheduler.h"

namespace weir {
namespace {

TEST(ScopedSchedulerTest, DropsItsOwnWorkOnCloseAndLeavesOthersAlone) {
  SimScheduler base(1);
  ScopedScheduler closed(base);
  ScopedScheduler open(base);
  int runs_of_closed = 0;
  int runs_of_open = 0;
  closed.Post([&] { ++runs_of_closed; });
  open.Post([&] { ++runs_of_open; });
  closed.PostAt(base.Now() + std::chrono::seconds(1), [&] { ++runs_of_closed; });
  open.PostAt(base.Now() + std::chrono::seconds(1), [&] { ++runs_of_open; });
  closed.Close();
  closed.Join();
  base.RunFor(std::chrono::seconds(2));
  EXPECT_EQ(runs_of_closed, 0);
  EXPECT_EQ(runs_of_open, 2);
}

TEST(ScopedSchedulerTest, JoinWaitsForWorkThatHasBegun) {
  const auto base = NewPoolScheduler(2);
  ScopedScheduler scoped(*base);
  std::atomic<bool> begun{false};
  std::atomic<bool> ended{false};
  std::atomic<bool> may_end{false};
  scoped.Post([&] {
    begun = true;
    while (!may_end) std::this_thread::yield();
    ended = true;
  });
  while (!begun) std::this_thread::yield();
  scoped.Close();
  base->Post([&] { may_end = true; });
  scoped.Join();
  EXPECT_TRUE(ended);
  base->Close();
  base->Join();
}

}  // namespace
}  // namespace weir
