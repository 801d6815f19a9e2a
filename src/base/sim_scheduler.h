// A Scheduler for tests: one thread, virtual time, a seeded order.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "base/mutex.h"
#include "base/scheduler.h"
#include "base/timer_queue.h"

namespace weir {

/// Runs a whole cluster on the thread that pumps it. What is ready at the same virtual time runs in
/// a random order that the seed alone decides, so a schedule that fails can be run again. Time
/// stands still while work runs and jumps to the next timer when nothing is ready.
///
///   SimScheduler scheduler(/*seed=*/7);
///   scheduler.PostAt(scheduler.Now() + std::chrono::hours(1), [&] { rang = true; });
///   scheduler.RunFor(std::chrono::hours(2));   // at once
///
/// Work for one Driver keeps its order and runs only while that driver's RunUntil is on the stack,
/// as on a thread of its own. RunUntil may be called by work that another RunUntil runs; the outer
/// one then cannot return before the inner one does.
///
/// Posting is thread-safe, but a seed repeats a schedule only if nothing is posted by another
/// thread. Drivers must not outlive the scheduler.
class SimScheduler final : public Scheduler {
 public:
  explicit SimScheduler(std::uint64_t seed);
  ~SimScheduler() override;

  void Post(std::function<void()> work) override;
  std::shared_ptr<Timer> PostAt(TimePoint when, std::function<void()> work) override;
  TimePoint Now() const override;

  /// RunUntil of such a driver pumps the scheduler itself. When nothing is left to run and no timer
  /// is due before the deadline it moves the clock to the deadline and returns false; with
  /// TimePoint::max() for a deadline it leaves the clock alone.
  std::unique_ptr<Driver> NewDriver() override;

  void Close() override;
  /// Runs what was posted before Close().
  void Join() override;

  /// Runs one piece of work, moving the clock to the next timer if nothing is ready. False when
  /// there is nothing at all to run.
  bool Step();

  /// Runs what is ready, and what follows from it, until time would have to pass.
  void RunUntilIdle();

  /// Lets `duration` of virtual time pass and runs everything that is due in it.
  void RunFor(Duration duration);

 private:
  class SimDriver;
  using Work = std::function<void()>;

  /// Moves due timers to ready_, and the clock up to the next timer if nothing is ready and that
  /// timer is not after `limit`; then takes one piece of work.
  std::optional<Work> Take(TimePoint limit);
  std::optional<Work> TakeReady() WEIR_REQUIRES(mutex_);
  bool AdvanceToNextTimer(TimePoint limit) WEIR_REQUIRES(mutex_);
  bool RunOne(TimePoint limit);
  bool RunUntil(SimDriver& driver, const std::function<bool()>& done, TimePoint deadline);
  void AdvanceTo(TimePoint when);

  mutable Mutex mutex_;
  std::mt19937_64 random_ WEIR_GUARDED_BY(mutex_);
  TimePoint now_ WEIR_GUARDED_BY(mutex_);
  bool closed_ WEIR_GUARDED_BY(mutex_) = false;
  std::vector<Work> ready_ WEIR_GUARDED_BY(mutex_);
  std::vector<SimDriver*> running_drivers_ WEIR_GUARDED_BY(mutex_);  // whose RunUntil is on
  const std::shared_ptr<TimerQueue> timers_ = std::make_shared<TimerQueue>();
};

}  // namespace weir
