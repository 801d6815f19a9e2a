// The progress line of a launched job.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "cli/console.h"
#include "cli/launched_task.h"
#include "cli/progress.h"
#include "cli/staleness_poll.h"
#include "cluster/cluster_spec.h"

namespace weir::cli {

/// On the launcher's thread. Steps and loss are what the tasks report, staleness is asked for.
class LaunchProgress {
 public:
  using Clock = std::chrono::steady_clock;

  /// `console` is not owned.
  LaunchProgress(const ClusterSpec& cluster, Console* console);
  /// Once a second on a terminal, every 5 s elsewhere; nothing before the first step.
  void ShowWhenDue(const std::vector<std::unique_ptr<LaunchedTask>>& tasks);

 private:
  Console* const console_;
  const Clock::duration every_;
  Clock::time_point next_;
  RateMeter rate_;
  StalenessPoll staleness_;
  bool asked_ = false;  // for the line that comes next
};

}  // namespace weir::cli
