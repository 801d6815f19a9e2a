// The Driver of real threads: a queue that the waiting thread empties itself.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <optional>

#include "base/mutex.h"
#include "base/scheduler.h"
#include "base/yield_poll.h"

namespace weir {

/// A thread that waits looks at its queue for `poll_before_sleep` (yield_poll.h says why), and only
/// then sleeps.
class PoolDriver final : public Driver {
 public:
  static constexpr Duration kPollBeforeSleep = std::chrono::microseconds(50);

  explicit PoolDriver(Duration poll_before_sleep = kPollBeforeSleep) : poll_(poll_before_sleep) {}

  void Post(std::function<void()> work) override;
  bool RunUntil(const std::function<bool()>& done, TimePoint deadline) override;

 private:
  std::optional<std::function<void()>> Take();
  void PollForWork();
  void SleepForWork(TimePoint deadline);

  YieldPoll poll_;                     // of the thread that waits
  std::atomic<bool> has_work_{false};  // !queue_.empty(), readable without the lock
  Mutex mutex_;
  CondVar posted_;
  bool sleeping_ WEIR_GUARDED_BY(mutex_) = false;
  std::deque<std::function<void()>> queue_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir
