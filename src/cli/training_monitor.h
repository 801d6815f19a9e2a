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
#include "cli/report.h"
#include "weir/session.h"

namespace weir::cli {

/// Thread-safe. A step costs a clock reading and a short lock.
class TrainingMonitor {
 public:
  struct Options {
    std::string task;
    std::chrono::milliseconds report_every{250};
    std::chrono::milliseconds line_every{0};  // 0: no lines of its own (a launcher shows progress)
    std::int64_t step_limit = -1;
  };

  TrainingMonitor(Options options, ReportPipe* pipe,
                  std::function<void(const std::string&)> print_line);

  /// The loss is looked for among a step's fetches under these names.
  void WatchLoss(const std::string& output_name);
  /// Training begins now: all who take part are there.
  void Begin();
  /// This task has no loop of its own; tells the launcher so.
  void Serving();
  void OnStep(const StepReport& step);
  void AddResult(const std::string& name, double value);
  /// What is known now.
  TaskReport Snapshot() const;

 private:
  using Clock = std::chrono::steady_clock;
  std::string ProgressLine(Clock::time_point now) WEIR_REQUIRES(mutex_);

  const Options options_;
  ReportPipe* const pipe_;
  const std::function<void(const std::string&)> print_line_;
  mutable Mutex mutex_;
  std::vector<std::string> loss_names_ WEIR_GUARDED_BY(mutex_);
  TaskReport report_ WEIR_GUARDED_BY(mutex_);
  std::optional<at::Tensor> last_loss_ WEIR_GUARDED_BY(mutex_);
  Clock::time_point began_ WEIR_GUARDED_BY(mutex_);
  Clock::time_point last_report_ WEIR_GUARDED_BY(mutex_);
  Clock::time_point last_line_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t step_at_last_line_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::cli
