#include "cli/launch_progress.h"

#include <algorithm>
#include <utility>

namespace weir::cli {
namespace {

constexpr std::chrono::milliseconds kAskAhead{300};

Progress ProgressOf(const std::vector<std::unique_ptr<LaunchedTask>>& tasks) {
  Progress progress;
  for (const auto& task : tasks) {
    const auto& report = task->report();
    if (!report || report->steps == 0) continue;
    progress.step = std::max(progress.step, report->global_step);
    progress.step_limit = std::max(progress.step_limit, report->step_limit);
    if (report->loss) progress.loss = report->loss;
  }
  return progress;
}

}  // namespace

LaunchProgress::LaunchProgress(const ClusterSpec& cluster, Console* console)
    : console_(console),
      every_(ProgressEvery(*console)),
      next_(Clock::now() + every_),
      rate_(Clock::now()),
      staleness_(cluster) {}

void LaunchProgress::ShowWhenDue(const std::vector<std::unique_ptr<LaunchedTask>>& tasks) {
  const auto now = Clock::now();
  // Asked a little ahead, so that the answer is there when the line is.
  if (now >= next_ - kAskAhead && !std::exchange(asked_, true)) staleness_.Ask();
  if (now < next_) return;
  next_ = now + every_;
  asked_ = false;
  Progress progress = ProgressOf(tasks);
  if (progress.step == 0) return;
  progress.steps_per_second = rate_.Look(progress.step, now);
  progress.staleness = staleness_.latest();
  console_->Progress(FormatProgress(progress));
}

}  // namespace weir::cli
