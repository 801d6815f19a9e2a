#include "cli/training_monitor.h"

#include <algorithm>
#include <utility>

namespace weir::cli {
namespace {

double SecondsSinceEpoch() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

TrainingMonitor::TrainingMonitor(Options options, ReportPipe* pipe,
                                 std::function<void(const Progress&)> show)
    : options_(std::move(options)), pipe_(pipe), show_(std::move(show)) {
  MutexLock lock(mutex_);
  report_.task = options_.task;
  report_.step_limit = options_.step_limit;
}

void TrainingMonitor::WatchLoss(const std::string& output_name) {
  MutexLock lock(mutex_);
  loss_names_.push_back(output_name);
}

void TrainingMonitor::Waiting() {
  TellState([](TaskReport& report) { report.waiting = true; });
}

void TrainingMonitor::Begin() {
  {
    MutexLock lock(mutex_);
    last_report_ = last_shown_ = Clock::now();
    rate_ = RateMeter(last_shown_);
  }
  TellState([](TaskReport& report) {
    report.began = SecondsSinceEpoch();
    report.waiting = false;
  });
}

void TrainingMonitor::Serving() {
  TellState([](TaskReport& report) { report.serving = true; });
}

void TrainingMonitor::TellState(const std::function<void(TaskReport&)>& change) {
  TaskReport report;
  {
    MutexLock lock(mutex_);
    change(report_);
    report = report_;
  }
  pipe_->Write(report);
}

void TrainingMonitor::OnStep(const StepReport& step) {
  if (step.step == 0) return;  // it trained nothing
  std::optional<TaskReport> report;
  std::optional<Progress> progress;
  {
    MutexLock lock(mutex_);
    const auto now = Clock::now();
    CountStep(step);
    report = ReportIfDue(now);
    progress = ProgressIfDue(now);
  }
  if (report) pipe_->Write(*report);
  if (progress) show_(*progress);
}

void TrainingMonitor::CountStep(const StepReport& step) {
  ++report_.steps;
  report_.global_step = std::max(report_.global_step, step.step);
  report_.last_step = SecondsSinceEpoch();
  for (std::size_t i = 0; i < step.fetches->size(); ++i) {
    const bool is_loss = std::find(loss_names_.begin(), loss_names_.end(),
                                   (*step.fetches)[i].name()) != loss_names_.end();
    if (is_loss && (*step.values)[i].numel() == 1) last_loss_ = (*step.values)[i];
  }
}

std::optional<TaskReport> TrainingMonitor::ReportIfDue(Clock::time_point now) {
  if (now - last_report_ < options_.report_every) return std::nullopt;
  last_report_ = now;
  if (last_loss_) report_.loss = last_loss_->item<double>();
  return report_;
}

std::optional<Progress> TrainingMonitor::ProgressIfDue(Clock::time_point now) {
  if (options_.show_every.count() == 0 || over_) return std::nullopt;
  Progress progress = {
      .step = report_.global_step, .step_limit = options_.step_limit, .steps_per_second = 0};
  over_ = progress.is_over();
  if (!over_ && now - last_shown_ < options_.show_every) return std::nullopt;
  last_shown_ = now;
  progress.steps_per_second = rate_.Look(progress.step, now);
  if (last_loss_) progress.loss = last_loss_->item<double>();
  return progress;
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
