// The work that waits for its time: what PoolScheduler and SimScheduler have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/scheduler.h"

namespace weir {

/// Work ordered by time, then by the order of the calls. A cancelled entry leaves at once, so that
/// a deadline set for every step costs nothing once the step is over. Thread-safe.
class TimerQueue : public std::enable_shared_from_this<TimerQueue> {
 public:
  /// The handle may outlive the queue.
  std::shared_ptr<Timer> Add(TimePoint when, std::function<void()> work);

  /// Takes out everything due at `now`. What is returned looks once more, when it is called,
  /// whether it has been cancelled in the meantime.
  std::vector<std::function<void()>> TakeDue(TimePoint now);

  /// The time of the earliest entry, or nothing.
  std::optional<TimePoint> NextDue() const;

  /// Drops every entry unrun.
  void Clear();

 private:
  class Entry;
  using Key = std::pair<TimePoint, std::uint64_t>;

  void Erase(const Key& key);

  mutable Mutex mutex_;
  std::uint64_t next_number_ WEIR_GUARDED_BY(mutex_) = 0;
  std::map<Key, std::shared_ptr<Entry>> entries_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir
