// Several calls at once, and one thread that waits for all of them.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "base/scheduler.h"
#include "cluster/task.h"

namespace weir::runtime {

/// Calls `start(task, reply)` for each task and blocks until each has replied (exactly once) or
/// `deadline` has passed. Returns the first error, or DeadlineExceeded naming who has not replied.
/// Waits as a Driver, so it works on a simulated scheduler's thread too.
absl::Status Gather(
    Scheduler& scheduler, const std::vector<TaskId>& tasks, TimePoint deadline,
    const std::function<void(const TaskId&, std::function<void(absl::Status)>)>& start);

}  // namespace weir::runtime
