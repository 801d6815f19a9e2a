// The one way asynchronous work is run in Weir. Production runs it on pools of threads, a test runs
// a whole cluster on one thread, in a seeded order and in virtual time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace weir {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::steady_clock::time_point;

/// A handle on work posted for later. Dropping the handle does not cancel the work.
class Timer {
 public:
  virtual ~Timer() = default;
  /// The work will not start after this returns, unless it has begun already. Never blocks.
  virtual void Cancel() = 0;
};

/// Lets a thread that has to wait for an outcome do the work that leads there, instead of waking a
/// pool and sleeping. In production Post() hands work to the waiting thread, which polls for a few
/// microseconds (yielding) before it sleeps; in a test both go through the simulated scheduler.
class Driver {
 public:
  virtual ~Driver() = default;
  /// Thread-safe. Work posted after RunUntil has returned for good is dropped.
  virtual void Post(std::function<void()> work) = 0;
  /// Runs posted work on the calling thread until `done()` or until `deadline` has passed, and says
  /// which: true when done. `done` is looked at before and after each piece of work, so whoever
  /// makes it true from another thread posts something afterwards (empty work will do).
  virtual bool RunUntil(const std::function<bool()>& done, TimePoint deadline) = 0;
};

/// Thread-safe. Work is a function that does not throw; it may post more work.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  /// Runs `work` soon, never inside this call. After Close() the work is dropped unrun.
  virtual void Post(std::function<void()> work) = 0;

  /// Runs `work` at `when` or soon after; never null.
  virtual std::shared_ptr<Timer> PostAt(TimePoint when, std::function<void()> work) = 0;

  /// The time by which PostAt counts; virtual in tests.
  virtual TimePoint Now() const = 0;

  /// A queue of work that the thread waiting for its outcome runs itself; see Driver.
  virtual std::unique_ptr<class Driver> NewDriver() = 0;

  /// Takes no more work. Work that runs goes on; call Join() to wait for it.
  virtual void Close() = 0;
  /// REQUIRES: Close() was called, and the caller is not one of the scheduler's threads.
  virtual void Join() = 0;
};

/// `threads` threads (at least 1) and one timer thread.
std::unique_ptr<Scheduler> NewPoolScheduler(int threads);

}  // namespace weir
