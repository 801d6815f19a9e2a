// Keeps a line that somebody else can provoke from filling the log.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "base/scheduler.h"

namespace weir {

/// Admits one line in each period. Thread-safe.
class LineLimiter {
 public:
  explicit LineLimiter(Duration period) : period_(period) {}

  /// Whether a line may be written at `now`: how many were not since the last one, or nullopt.
  std::optional<std::uint64_t> Admit(TimePoint now) {
    MutexLock lock(mutex_);
    if (next_ && now < *next_) {
      ++unsaid_;
      return std::nullopt;
    }
    next_ = now + period_;
    return std::exchange(unsaid_, 0);
  }

 private:
  const Duration period_;
  Mutex mutex_;
  std::optional<TimePoint> next_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t unsaid_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir
