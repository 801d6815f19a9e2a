#include "cli/launch.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "cli/free_port.h"
#include "cli/signals.h"
#include "cli/summary.h"

namespace weir::cli {
namespace {

constexpr int kPollMs = 50;
constexpr std::chrono::seconds kTerminalProgressEvery{1};
constexpr std::chrono::seconds kPlainProgressEvery{5};
constexpr std::chrono::seconds kGraceAfterLostServer{2};
constexpr std::size_t kLastLines = 20;

absl::StatusOr<ClusterSpec> LocalCluster(int ps, int workers) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<int> ports, FindFreePorts(ps + workers));
  const auto addresses = [&](int first, int count) {
    std::vector<std::string> parts;
    for (int i = first; i < first + count; ++i)
      parts.push_back(absl::StrCat("127.0.0.1:", ports[static_cast<std::size_t>(i)]));
    return absl::StrJoin(parts, ",");
  };
  std::vector<std::string> jobs;
  if (ps > 0) jobs.push_back("ps=" + addresses(0, ps));
  if (workers > 0) jobs.push_back("worker=" + addresses(ps, workers));
  return ClusterSpec::ParseFlag(absl::StrJoin(jobs, ";"));
}

std::string TfConfig(const ClusterSpec& cluster, const TaskId& task) {
  nlohmann::json json;
  for (const auto& [job, tasks] : cluster.jobs()) {
    json["cluster"][job] = nlohmann::json::array();
    for (const auto& [index, address] : tasks) json["cluster"][job].push_back(address.ToString());
  }
  json["task"] = {{"type", task.job}, {"index", task.index}};
  return json.dump();
}

/// Everything that is there now; the descriptor does not block.
template <typename Function>
void ReadAvailable(int fd, LineBuffer& lines, Function&& on_line) {
  char data[64 * 1024];
  for (ssize_t n = ::read(fd, data, sizeof(data)); n > 0; n = ::read(fd, data, sizeof(data))) {
    for (const std::string& line : lines.Take(data, static_cast<std::size_t>(n))) on_line(line);
  }
}

}  // namespace

absl::StatusOr<LaunchResult> Launch(const LaunchOptions& options) {
  if (options.ps < 0 || options.workers < 1)
    return absl::InvalidArgumentError("a job needs at least one worker");
  if (options.command.empty())
    return absl::InvalidArgumentError("nothing to launch: weir launch ... -- ./program arguments");
  Launcher launcher(options);
  WEIR_RETURN_IF_ERROR(launcher.Start());
  return launcher.Run();
}

Launcher::Launcher(LaunchOptions options)
    : options_(std::move(options)), started_(Clock::now()), last_step_at_(started_) {
  next_progress_ = started_ + kTerminalProgressEvery;
}

absl::Status Launcher::Start() {
  BlockStopSignals();
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  signal_fd_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  WEIR_ASSIGN_OR_RETURN(const ClusterSpec cluster, LocalCluster(options_.ps, options_.workers));
  if (!options_.quiet) console_.Say("[launch] cluster '" + cluster.ToString() + "'");
  for (const TaskId& task : cluster.AllTasks()) WEIR_RETURN_IF_ERROR(StartTask(cluster, task));
  staleness_ = std::make_unique<StalenessPoll>(cluster, options_.ps > 0 ? "ps" : "worker");
  return absl::OkStatus();
}

absl::Status Launcher::StartTask(const ClusterSpec& cluster, const TaskId& task) {
  WEIR_ASSIGN_OR_RETURN(Child child, Child::Start(task.ToString(), options_.command,
                                                  {{"TF_CONFIG", TfConfig(cluster, task)}}));
  tasks_.push_back(std::make_unique<Task>(std::move(child), task.job == "ps"));
  return absl::OkStatus();
}

LaunchResult Launcher::Run() {
  while (!AllEnded()) {
    PollOnce();
    NoticeEnds();
    EndThoseWhoOnlyServe();
    EndWhoIsLate();
    ShowProgress();
  }
  return Finish();
}

void Launcher::PollOnce() {
  std::vector<pollfd> fds = {{.fd = signal_fd_, .events = POLLIN, .revents = 0}};
  for (const auto& task : tasks_) {
    if (task->end_seen) continue;
    for (const int fd :
         {task->child.stdout_fd(), task->child.stderr_fd(), task->child.report_fd()}) {
      fds.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    }
  }
  ::poll(fds.data(), fds.size(), kPollMs);
  signalfd_siginfo info{};
  while (::read(signal_fd_, &info, sizeof(info)) == sizeof(info))
    OnSignal(static_cast<int>(info.ssi_signo));
  const bool hung_up = std::any_of(fds.begin(), fds.end(), [](const pollfd& fd) {
    return (fd.revents & (POLLHUP | POLLERR)) != 0;
  });
  for (const auto& task : tasks_) {
    if (!task->end_seen) ReadLines(*task);
  }
  // A closed pipe is readable for ever: until its owner is reaped, do not spin on it.
  if (hung_up) ::poll(nullptr, 0, 1);
}

void Launcher::ReadLines(Task& task) {
  ReadAvailable(task.child.stdout_fd(), task.out,
                [&](const std::string& line) { ShowOut(task, line); });
  ReadAvailable(task.child.stderr_fd(), task.err,
                [&](const std::string& line) { ShowErr(task, line); });
  ReadAvailable(task.child.report_fd(), task.reports,
                [&](const std::string& line) { TakeReport(task, line); });
}

void Launcher::ShowOut(Task& task, const std::string& line) {
  if (!options_.quiet) console_.TaskOut(task.child.task(), line);
}

void Launcher::ShowErr(Task& task, const std::string& line) {
  if (!options_.quiet) console_.TaskErr(task.child.task(), line);
  task.last_lines.push_back(line);
  if (task.last_lines.size() > kLastLines) task.last_lines.pop_front();
}

void Launcher::TakeReport(Task& task, const std::string& line) {
  auto report = ParseReport(line);
  if (!report.ok())
    return console_.Say(
        absl::StrCat("[launch] ", task.child.task(), ": ", std::string(report.status().message())));
  task.report = *std::move(report);
}

void Launcher::NoticeEnds() {
  for (const auto& task : tasks_) {
    task->child.Reap();
    if (!task->child.ended() || task->end_seen) continue;
    ReadLines(*task);  // what it wrote last
    if (const std::string rest = task->out.TakeRest(); !rest.empty()) ShowOut(*task, rest);
    if (const std::string rest = task->err.TakeRest(); !rest.empty()) ShowErr(*task, rest);
    task->end_seen = true;
    OnEnd(*task);
  }
}

void Launcher::OnEnd(const Task& task) {
  const bool expected = task.child.succeeded() || (task.told_to_end && interrupted_by_ != 0);
  if (!expected) {
    failed_.push_back(task.child.task());
    console_.Say(absl::StrFormat("[launch] %s %s%s", task.child.task(), task.child.HowItEnded(),
                                 task.told_to_end ? " after it was told to end" : ""));
  }
  if (!task.serves() || task.told_to_end || end_at_) return;
  console_.Say(absl::StrFormat("[launch] the job cannot go on without %s", task.child.task()));
  end_at_ = Clock::now() + kGraceAfterLostServer;
}

// A task that trains has ended, and no other is left. Who has not said yet that it serves may still
// train.
void Launcher::EndThoseWhoOnlyServe() {
  bool ended = false;
  bool left = false;
  for (const auto& task : tasks_) {
    if (!task->serves()) (task->end_seen ? ended : left) = true;
  }
  if (ended && !left) TellAllToEnd();
}

void Launcher::OnSignal(int signal) {
  const bool again = std::exchange(interrupted_by_, signal) != 0;
  console_.Say(again ? "[launch] interrupted again: killing what is left"
                     : "[launch] interrupted: ending all tasks");
  if (!again) return TellAllToEnd();
  for (const auto& task : tasks_) {
    if (!task->child.ended()) task->child.Signal(SIGKILL);
  }
}

void Launcher::TellToEnd(Task& task) {
  if (task.child.ended() || std::exchange(task.told_to_end, true)) return;
  task.child.Signal(SIGTERM);
}

void Launcher::TellAllToEnd() {
  if (kill_at_) return;
  for (const auto& task : tasks_) TellToEnd(*task);
  kill_at_ = Clock::now() +
             std::chrono::milliseconds(static_cast<std::int64_t>(options_.stop_timeout_s * 1e3));
}

void Launcher::EndWhoIsLate() {
  if (end_at_ && Clock::now() >= *end_at_) TellAllToEnd();
  if (!kill_at_ || Clock::now() < *kill_at_) return;
  kill_at_ = Clock::now() + std::chrono::seconds(1);
  for (const auto& task : tasks_) {
    if (task->child.ended()) continue;
    console_.Say(
        absl::StrFormat("[launch] %s does not end by itself: killing it", task->child.task()));
    task->told_to_end = true;
    task->child.Signal(SIGKILL);
  }
}

void Launcher::ShowProgress() {
  const auto now = Clock::now();
  if (options_.no_progress || options_.quiet || now < next_progress_) return;
  next_progress_ = now + (console_.is_terminal() ? kTerminalProgressEvery : kPlainProgressEvery);
  staleness_->Ask();
  std::uint64_t step = 0;
  std::int64_t limit = -1;
  std::optional<double> loss;
  for (const auto& task : tasks_) {
    if (!task->report || task->report->steps == 0) continue;
    step = std::max(step, task->report->global_step);
    limit = std::max(limit, task->report->step_limit);
    if (task->report->loss) loss = task->report->loss;
  }
  if (step == 0) return;
  const double rate = static_cast<double>(step - std::min(step, last_step_)) /
                      std::chrono::duration<double>(now - last_step_at_).count();
  last_step_ = step;
  last_step_at_ = now;
  std::string line =
      limit >= 0 ? absl::StrFormat("step %d of %d", step, limit) : absl::StrFormat("step %d", step);
  absl::StrAppendFormat(&line, "  %.0f steps/s", rate);
  if (loss) absl::StrAppendFormat(&line, "  loss %.4f", *loss);
  if (const auto staleness = staleness_->latest())
    absl::StrAppendFormat(&line, "  staleness p50 %d max %d", staleness->p50, staleness->max);
  if (limit >= 0 && rate > 0)
    absl::StrAppendFormat(
        &line, "  %.0f s left",
        std::max(0.0, static_cast<double>(limit) - static_cast<double>(step)) / rate);
  console_.Progress(line);
}

bool Launcher::AllEnded() const {
  return std::all_of(tasks_.begin(), tasks_.end(), [](const auto& task) { return task->end_seen; });
}

LaunchResult Launcher::Finish() {
  console_.ClearProgress();
  ::close(signal_fd_);
  std::vector<TaskReport> reports;
  for (const auto& task : tasks_) {
    if (task->report) reports.push_back(*task->report);
  }
  const Summary summary =
      Summarize(reports, std::chrono::duration<double>(Clock::now() - started_).count());
  if (!options_.quiet && !reports.empty()) console_.Say(SummaryToText(summary));
  absl::Status written;
  if (!options_.summary.empty()) written = WriteSummary(options_.summary, summary);
  if (!written.ok()) console_.Say("[launch] " + std::string(written.message()));
  if (!failed_.empty()) console_.Say(Failures());
  int exit_code = failed_.empty() && written.ok() ? 0 : 1;
  if (interrupted_by_ != 0) {
    console_.Say("[launch] interrupted");
    exit_code = 128 + interrupted_by_;
  }
  return {.exit_code = exit_code, .reports = std::move(reports)};
}

std::string Launcher::Failures() const {
  const auto find = [this](const std::string& name) -> const Task& {
    return **std::find_if(tasks_.begin(), tasks_.end(),
                          [&](const auto& task) { return task->child.task() == name; });
  };
  const Task& first = find(failed_[0]);
  std::string text =
      absl::StrFormat("[launch] first failure: %s %s", failed_[0], first.child.HowItEnded());
  for (const std::string& line : first.last_lines) absl::StrAppend(&text, "\n[launch]   | ", line);
  for (std::size_t i = 1; i < failed_.size(); ++i) {
    absl::StrAppendFormat(&text, "\n[launch] then %s %s", failed_[i],
                          find(failed_[i]).child.HowItEnded());
  }
  return text;
}

}  // namespace weir::cli
