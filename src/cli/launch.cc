#include "cli/launch.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "cli/flag_checks.h"
#include "cli/launch_plan.h"
#include "cli/local_cluster.h"
#include "cli/signals.h"
#include "cli/summary.h"

namespace weir::cli {
namespace {

constexpr int kPollMs = 50;
constexpr std::chrono::seconds kGraceAfterLoss{2};

/// The ports are given back at once: what is told is how it would be, not a reservation.
absl::StatusOr<LaunchResult> TellWhatWouldStart(const LaunchOptions& options) {
  WEIR_ASSIGN_OR_RETURN(const ReservedPorts ports,
                        ReservedPorts::Find(options.ps + options.workers));
  WEIR_ASSIGN_OR_RETURN(const ClusterSpec cluster, LocalCluster(options.ps, ports.ports()));
  std::printf("%s", DescribeLaunch(cluster, options.command).c_str());
  return LaunchResult{};
}

}  // namespace

absl::StatusOr<LaunchResult> Launch(const LaunchOptions& options) {
  if (options.ps < 0 || options.workers < 1)
    return absl::InvalidArgumentError("a job needs at least one worker");
  if (options.command.empty())
    return absl::InvalidArgumentError("nothing to launch: weir launch ... -- ./program arguments");
  if (options.dry_run) return TellWhatWouldStart(options);
  Launcher launcher(options);
  WEIR_RETURN_IF_ERROR(launcher.Start());
  return launcher.Run();
}

Launcher::~Launcher() {
  if (signal_fd_ >= 0) ::close(signal_fd_);
}

absl::Status Launcher::Start() {
  BlockStopSignals();
  signal_fd_ = OpenStopSignals();
  WEIR_ASSIGN_OR_RETURN(ReservedPorts ports, ReservedPorts::Find(options_.ps + options_.workers));
  ports_.emplace(std::move(ports));
  WEIR_ASSIGN_OR_RETURN(const ClusterSpec cluster, LocalCluster(options_.ps, ports_->ports()));
  if (!options_.quiet) console_.Say("[launch] cluster '" + cluster.ToString() + "'");
  for (const TaskId& task : cluster.AllTasks()) WEIR_RETURN_IF_ERROR(StartTask(cluster, task));
  if (!options_.quiet && !options_.no_progress) progress_.emplace(cluster, &console_);
  return absl::OkStatus();
}

absl::Status Launcher::StartTask(const ClusterSpec& cluster, const TaskId& task) {
  WEIR_ASSIGN_OR_RETURN(
      Child child, Child::Start(task.ToString(), options_.command, TaskEnvironment(cluster, task)));
  tasks_.push_back(std::make_unique<LaunchedTask>(std::move(child), task.job == "ps",
                                                  options_.quiet ? nullptr : &console_));
  return absl::OkStatus();
}

LaunchResult Launcher::Run() {
  while (!AllEnded()) {
    PollOnce();
    NoticeEnds();
    EndThoseWhoOnlyServe();
    EndThoseWhoWaitInVain();
    EndWhoIsLate();
    if (progress_) progress_->ShowWhenDue(tasks_);
  }
  return Finish();
}

void Launcher::PollOnce() {
  std::vector<pollfd> fds = {{.fd = signal_fd_, .events = POLLIN, .revents = 0}};
  for (const auto& task : tasks_) {
    if (task->ended()) continue;
    for (const int fd : task->fds()) fds.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  }
  ::poll(fds.data(), fds.size(), kPollMs);
  signalfd_siginfo info{};
  while (::read(signal_fd_, &info, sizeof(info)) == sizeof(info))
    OnSignal(static_cast<int>(info.ssi_signo));
  const bool hung_up = std::any_of(fds.begin(), fds.end(), [](const pollfd& fd) {
    return (fd.revents & (POLLHUP | POLLERR)) != 0;
  });
  for (const auto& task : tasks_) {
    if (!task->ended()) task->ReadSome();
  }
  // A closed pipe is readable for ever: until its owner is reaped, do not spin on it.
  if (hung_up) ::poll(nullptr, 0, 1);
}

void Launcher::NoticeEnds() {
  for (const auto& task : tasks_) {
    if (task->Reap()) OnEnd(*task);
  }
}

void Launcher::OnEnd(const LaunchedTask& task) {
  // One that has served and ends well was told to by another task; any other leaves those who need
  // it alone, whatever its code.
  const bool left =
      task.serves() && !task.told_to_end() && !(task.has_served() && task.ended_well());
  if (left || (!task.ended_well() && !(task.told_to_end() && interrupted_by_ != 0))) {
    failed_.push_back(&task);
    console_.Say(absl::StrFormat("[launch] %s%s", task.HowItEnded(),
                                 task.told_to_end() ? " after it was told to end" : ""));
  }
  if (!left || end_at_) return;
  console_.Say(absl::StrFormat("[launch] the job cannot go on without %s", task.name()));
  end_at_ = Clock::now() + kGraceAfterLoss;
}

// A task that trains has ended, and no other is left. Who has not said yet that it serves may still
// train.
void Launcher::EndThoseWhoOnlyServe() {
  bool ended = false;
  bool left = false;
  for (const auto& task : tasks_) {
    if (!task->serves()) (task->ended() ? ended : left) = true;
  }
  if (ended && !left) TellAllToEnd();
}

// Somebody waits for all workers to be there, and one of them never will.
void Launcher::EndThoseWhoWaitInVain() {
  const bool waits =
      std::any_of(tasks_.begin(), tasks_.end(), [](const auto& task) { return task->waits(); });
  if (!waits || failed_.empty() || end_at_ || kill_at_) return;
  console_.Say(absl::StrFormat("[launch] the job cannot begin without %s", failed_[0]->name()));
  end_at_ = Clock::now() + kGraceAfterLoss;
}

void Launcher::OnSignal(int signal) {
  const bool again = std::exchange(interrupted_by_, signal) != 0;
  console_.Say(again ? "[launch] interrupted again: killing what is left"
                     : "[launch] interrupted: ending all tasks");
  if (!again) return TellAllToEnd();
  for (const auto& task : tasks_) task->Kill();
}

void Launcher::TellAllToEnd() {
  if (kill_at_) return;
  for (const auto& task : tasks_) task->TellToEnd();
  kill_at_ = Clock::now() + Milliseconds(options_.stop_timeout_s);
}

void Launcher::EndWhoIsLate() {
  if (end_at_ && Clock::now() >= *end_at_) TellAllToEnd();
  if (!kill_at_ || Clock::now() < *kill_at_) return;
  kill_at_ = Clock::now() + std::chrono::seconds(1);
  for (const auto& task : tasks_) {
    if (task->ended()) continue;
    console_.Say(absl::StrFormat("[launch] %s does not end by itself: killing it", task->name()));
    task->Kill();
  }
}

bool Launcher::AllEnded() const {
  return std::all_of(tasks_.begin(), tasks_.end(), [](const auto& task) { return task->ended(); });
}

std::vector<TaskReport> Launcher::Reports() const {
  std::vector<TaskReport> reports;
  for (const auto& task : tasks_) {
    if (task->report()) reports.push_back(*task->report());
  }
  return reports;
}

LaunchResult Launcher::Finish() {
  console_.ClearProgress();
  LaunchResult result = {.exit_code = failed_.empty() ? 0 : 1, .reports = Reports()};
  const Summary summary =
      Summarize(result.reports, std::chrono::duration<double>(Clock::now() - started_).count());
  if (!options_.quiet && !result.reports.empty()) console_.Say(SummaryToText(summary));
  if (!options_.summary.empty()) {
    if (const absl::Status written = WriteSummary(options_.summary, summary); !written.ok()) {
      console_.Say("[launch] " + std::string(written.message()));
      result.exit_code = 1;
    }
  }
  if (!failed_.empty()) console_.Say(Failures());
  if (interrupted_by_ != 0) {
    console_.Say("[launch] interrupted");
    result.exit_code = 128 + interrupted_by_;
  }
  return result;
}

std::string Launcher::Failures() const {
  std::string text = "[launch] first failure: " + failed_[0]->HowItEnded();
  for (const std::string& line : failed_[0]->last_lines())
    absl::StrAppend(&text, "\n[launch]   | ", line);
  for (std::size_t i = 1; i < failed_.size(); ++i)
    absl::StrAppend(&text, "\n[launch] then ", failed_[i]->HowItEnded());
  return text;
}

}  // namespace weir::cli
