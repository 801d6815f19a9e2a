// Step tickets: who may take the next training step, so that exactly the wanted number is
// completed.
//
// A ticket is given while `completed + outstanding < limit`. When the outstanding ones use up the
// limit, a request waits: a ticket whose step fails comes back and is given to it, and when the
// last step completes it is refused. So with a limit of 100 exactly 100 steps complete, whatever
// fails on the way.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"

namespace weir::store {

/// A step, named across all masters: the incarnation of the master that runs it, and its number
/// there.
struct StepId {
  std::uint64_t origin = 0;
  std::uint64_t step = 0;
  auto operator<=>(const StepId&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const StepId& id) {
    return H::combine(std::move(h), id.origin, id.step);
  }
};

/// Thread-safe. Callbacks are called outside the lock, exactly once, possibly inside the call that
/// made them answerable (Request, Complete, Release, SetCompleted, the destructor).
class TicketBook {
 public:
  /// The number of the ticket: 1 for the first step ever. No two steps complete with the same
  /// number: a number whose step has failed is given again, to the next one who asks.
  using Callback = std::function<void(absl::StatusOr<std::uint64_t>)>;

  TicketBook() = default;
  TicketBook(const TicketBook&) = delete;
  TicketBook& operator=(const TicketBook&) = delete;
  /// Whoever still waits gets Cancelled. REQUIRES: no other call is running.
  ~TicketBook();

  /// `limit` < 0: no limit. OutOfRange "step limit N reached" when N steps have completed. A step
  /// that asks again while it holds a ticket gets the same one.
  void Request(const StepId& id, std::int64_t limit, Callback done);
  /// The step has completed: counts it. Returns the number of steps completed so far. `completed`
  /// starts from the value of the global_step variable. A step that holds no ticket (it has
  /// completed already, or was released and its ticket may be somebody else's) is not counted.
  std::uint64_t Complete(const StepId& id);
  /// The step has ended without completing: its ticket (or its place in the queue, whose callback
  /// gets Cancelled) is free. A no-op for a step that holds nothing.
  void Release(const StepId& id);
  /// The count goes on from `completed`, as when global_step is initialised, assigned or restored.
  void SetCompleted(std::uint64_t completed);
  std::uint64_t completed() const;

 private:
  struct Waiter {
    StepId id;
    std::int64_t limit;
    Callback done;
  };
  using Answers = std::vector<std::function<void()>>;

  /// Moves everybody who can be answered now out of waiters_, in the order in which they came.
  Answers AnswerWaiters() WEIR_REQUIRES(mutex_);
  bool CanAnswer(const Waiter& waiter) const WEIR_REQUIRES(mutex_);
  absl::StatusOr<std::uint64_t> AnswerTo(const Waiter& waiter) WEIR_REQUIRES(mutex_);
  /// Takes the ticket of `id` out of outstanding_; 0 when it holds none.
  std::uint64_t TakeBack(const StepId& id) WEIR_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::uint64_t completed_ WEIR_GUARDED_BY(mutex_) = 0;
  std::uint64_t next_ticket_ WEIR_GUARDED_BY(mutex_) = 1;
  std::set<std::uint64_t> returned_ WEIR_GUARDED_BY(mutex_);  // numbers of steps that failed
  std::map<StepId, std::uint64_t> outstanding_ WEIR_GUARDED_BY(mutex_);
  std::deque<Waiter> waiters_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::store
