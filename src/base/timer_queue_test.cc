#include "base/timer_queue.h"

#include <gtest/gtest.h>

#include <chrono>

namespace weir {
namespace {

using std::chrono::seconds;

const TimePoint kStart = TimePoint(seconds(100));

class TimerQueueTest : public testing::Test {
 protected:
  std::shared_ptr<Timer> Add(int at, int value) {
    return queue_->Add(kStart + seconds(at), [this, value] { ran_.push_back(value); });
  }
  void RunDue(int now) {
    for (const auto& work : queue_->TakeDue(kStart + seconds(now))) work();
  }

  std::shared_ptr<TimerQueue> queue_ = std::make_shared<TimerQueue>();
  std::vector<int> ran_;
};

TEST_F(TimerQueueTest, OrdersByTimeThenByCall) {
  Add(2, 20);
  Add(1, 10);
  Add(1, 11);
  Add(3, 30);
  EXPECT_EQ(queue_->NextDue(), kStart + seconds(1));
  RunDue(2);
  EXPECT_EQ(ran_, (std::vector<int>{10, 11, 20}));
  EXPECT_EQ(queue_->NextDue(), kStart + seconds(3));
}

TEST_F(TimerQueueTest, CancelledEntryLeavesAtOnce) {
  Add(1, 10)->Cancel();
  EXPECT_EQ(queue_->NextDue(), std::nullopt);
  RunDue(5);
  EXPECT_TRUE(ran_.empty());
}

TEST_F(TimerQueueTest, DroppingTheHandleDoesNotCancel) {
  Add(1, 10).reset();
  RunDue(1);
  EXPECT_EQ(ran_, std::vector<int>{10});
}

TEST_F(TimerQueueTest, CancelCountsUntilTheWorkBegins) {
  const auto timer = Add(1, 10);
  const auto due = queue_->TakeDue(kStart + seconds(1));
  timer->Cancel();
  for (const auto& work : due) work();
  EXPECT_TRUE(ran_.empty());
}

TEST_F(TimerQueueTest, HandleMayOutliveTheQueue) {
  const auto timer = Add(1, 10);
  queue_.reset();
  timer->Cancel();
}

TEST_F(TimerQueueTest, WorkThatIsOverOrDroppedIsReleasedThoughItsHandleIsKept) {
  auto value = std::make_shared<int>(7);
  const auto ran = queue_->Add(kStart, [value] {});
  const auto cleared = queue_->Add(kStart + seconds(1), [value] {});
  EXPECT_EQ(value.use_count(), 3);
  RunDue(0);
  EXPECT_EQ(value.use_count(), 2);
  queue_->Clear();
  EXPECT_EQ(value.use_count(), 1);
}

}  // namespace
}  // namespace weir
