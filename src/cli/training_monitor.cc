#include "cli/training_monitor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weir::cli {
namespace {

double SecondsSinceEpoch() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

TrainingMonitor::TrainingMonitor(Options options, ReportPipe* pipe,
                                 std::function<void(const std::string&)> print_line)
    : options_(std::move(options)), pipe_(pipe), print_line_(std::move(print_line)) {
  MutexLock lock(mutex_);
  report_.task = options_.task;
  report_.step_limit = options_.step_limit;
}

void TrainingMonitor::WatchLoss(const std::string& output_name) {
  MutexLock lock(mutex_);
  loss_names_.push_back(output_name);
}

void TrainingMonitor::Begin() {
  MutexLock lock(mutex_);
  report_.began = SecondsSinceEpoch();
  began_ = last_report_ = last_line_ = Clock::now();
}

void TrainingMonitor::Serving() {
  TaskReport report;
  {
    MutexLock lock(mutex_);
    report_.serving = true;
    report = report_;
  }
  pipe_->Write(report);
}

void TrainingMonitor::OnStep(const StepReport& step) {
  if (step.step == 0) return;  // it trained nothing
  std::optional<TaskReport> to_report;
  std::string line;
  {
    MutexLock lock(mutex_);
    const auto now = Clock::now();
    ++report_.steps;
    report_.global_step = std::max(report_.global_step, step.step);
    report_.last_step = SecondsSinceEpoch();
    for (std::size_t i = 0; i < step.fetches->size(); ++i) {
      const bool is_loss = std::find(loss_names_.begin(), loss_names_.end(),
                                     (*step.fetches)[i].name()) != loss_names_.end();
      if (is_loss && (*step.values)[i].numel() == 1) last_loss_ = (*step.values)[i];
    }
    if (now - last_report_ >= options_.report_every) {
      last_report_ = now;
      if (last_loss_) report_.loss = last_loss_->item<double>();
      to_report = report_;
    }
    if (options_.line_every.count() > 0 && now - last_line_ >= options_.line_every)
      line = ProgressLine(now);
  }
  if (to_report) pipe_->Write(*to_report);
  if (!line.empty()) print_line_(line);
}

std::string TrainingMonitor::ProgressLine(Clock::time_point now) {
  const double seconds = std::chrono::duration<double>(now - last_line_).count();
  const double rate =
      static_cast<double>(report_.global_step - std::min(step_at_last_line_, report_.global_step)) /
      seconds;
  last_line_ = now;
  step_at_last_line_ = report_.global_step;
  std::string line = absl::StrFormat("step %d", report_.global_step);
  if (options_.step_limit >= 0) absl::StrAppend(&line, " of ", options_.step_limit);
  absl::StrAppendFormat(&line, ", %.0f steps/s", rate);
  if (report_.loss) absl::StrAppendFormat(&line, ", loss %.4f", *report_.loss);
  if (options_.step_limit >= 0 && rate > 0) {
    const double left =
        static_cast<double>(options_.step_limit) - static_cast<double>(report_.global_step);
    absl::StrAppendFormat(&line, ", %.0f s left", std::max(0.0, left / rate));
  }
  return line;
}

void TrainingMonitor::AddResult(const std::string& name, double value) {
  MutexLock lock(mutex_);
  report_.results[name] = value;
}

TaskReport TrainingMonitor::Snapshot() const {
  MutexLock lock(mutex_);
  TaskReport report = report_;
  if (last_loss_) report.loss = last_loss_->item<double>();
  return report;
}

}  // namespace weir::cli
