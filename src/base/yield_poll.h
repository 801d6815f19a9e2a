// How a thread that waits polls before it sleeps.
#pragma once

#include <sched.h>

#include <chrono>

#include "base/scheduler.h"

namespace weir {

/// Waking a sleeping thread costs some 20 µs each way, more than most of what is waited for in a
/// small step; so a thread that waits looks again and again for a little while, giving its
/// processor away each time (sched_yield: threads that outnumber the cores must not spin), and only
/// then sleeps. But where another program wants the processor, what was given away comes back a
/// time slice later, some milliseconds, while a thread that sleeps is let in as soon as it is
/// woken: a yield that takes that long ends polling for a while. For one thread.
///
///   poll.Begin();
///   while (!something_came() && poll.Yield()) {
///   }
class YieldPoll {
 public:
  using Clock = std::chrono::steady_clock;

  /// Longer than any step of ours gives way to another of ours; shorter than a time slice.
  static constexpr Duration kStolen = std::chrono::milliseconds(1);
  static constexpr Duration kPause = std::chrono::milliseconds(200);

  /// `poll_before_sleep`: how long to look; 0 sleeps at once.
  explicit YieldPoll(Duration poll_before_sleep) : poll_before_sleep_(poll_before_sleep) {}

  /// A wait begins.
  void Begin() { end_ = Clock::now() + poll_before_sleep_; }

  /// Gives the processor away once: look again. False, at once, when it is time to sleep.
  bool Yield() {
    const TimePoint before = Clock::now();
    if (before >= end_ || before < paused_until_) return false;
    ::sched_yield();
    const TimePoint after = Clock::now();
    if (after - before >= kStolen) paused_until_ = after + kPause;
    return true;
  }

 private:
  const Duration poll_before_sleep_;
  TimePoint end_;
  TimePoint paused_until_;
};

}  // namespace weir
