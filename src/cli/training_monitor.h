// What a worker's training is doing: counted step by step, told now and then.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "weir/session.h"

namespace weir::cli {

/// Thread-safe. A step costs a clock reading and a short lock.
class TrainingMonitor {
 public:
  struct Options {
    std::string task;
    std::chrono::milliseconds report_every{250};
    std::chrono::milliseconds show_every{0};  // 0: never (a launcher shows progress)
    std::int64_t step_limit = -1;
  };

  /// `show` gets the progress now and then, on the thread of a step, and once when the limit is
  /// reached.
  TrainingMonitor(Options options, ReportPipe* pipe, std::function<void(const Progress&)> show);

  /// The loss is looked for among a step's fetches under these names.
  void WatchLoss(const std::string& output_name);
  /// This task waits for other workers; tells the launcher so.
  void Waiting();
  /// Training begins now: all who take part are there. Tells the launcher so.
  void Begin();
  /// This task has no loop of its own; tells the launcher so.
  void Serving();
  void OnStep(const StepReport& step);
  void AddResult(const std::string& name, double value);
  /// What is known now.
  TaskReport Snapshot() const;

 private:
  void TellState(const std::function<void(TaskReport&)>& change);
  using Clock = std::chrono::steady_clock;
  void CountStep(const StepReport& step) WEIR_REQUIRES(mutex_);
  std::optional<TaskReport> ReportIfDue(Clock::time_point now) WEIR_REQUIRES(mutex_);
  std::optional<Progress> ProgressIfDue(Clock::time_point now) WEIR_REQUIRES(mutex_);

  const Options options_;
  ReportPipe* const pipe_;
  const std::function<void(const Progress&)> show_;
  mutable Mutex mutex_;
  std::vector<std::string> loss_names_ WEIR_GUARDED_BY(mutex_);
  TaskReport report_ WEIR_GUARDED_BY(mutex_);
  std::optional<at::Tensor> last_loss_ WEIR_GUARDED_BY(mutex_);
  Clock::time_point last_report_ WEIR_GUARDED_BY(mutex_);
  Clock::time_point last_shown_ WEIR_GUARDED_BY(mutex_);
  RateMeter rate_ WEIR_GUARDED_BY(mutex_){Clock::now()};
  bool over_ WEIR_GUARDED_BY(mutex_) = false;  // and shown
};

}  // namespace weir::cli
