// Work that must not overlap, on a scheduler that may have many threads.
#pragma once

#include <functional>
#include <memory>

#include "base/scheduler.h"

namespace weir {

/// Runs work one piece at a time, in the order of the calls. Between two pieces the scheduler may
/// run other work. Thread-safe; work that waits when the strand is destroyed still runs.
class Strand {
 public:
  /// `scheduler` is not owned and outlives the work.
  explicit Strand(Scheduler* scheduler);

  /// Never runs `work` inside this call.
  void Post(std::function<void()> work);

 private:
  class Queue;
  const std::shared_ptr<Queue> queue_;
};

}  // namespace weir
