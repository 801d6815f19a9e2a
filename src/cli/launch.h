// `weir launch`: a local cluster of one program, from its start to its end.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/child.h"
#include "cli/console.h"
#include "cli/report.h"
#include "cli/staleness_poll.h"
#include "cluster/cluster_spec.h"

namespace weir::cli {

struct LaunchOptions {
  int ps = 1;
  int workers = 1;
  std::vector<std::string> command;
  std::string summary;
  double stop_timeout_s = 5;
  bool no_progress = false;
  /// Nothing is shown unless something fails; for benchmarks.
  bool quiet = false;
};

struct LaunchResult {
  int exit_code = 0;
  std::vector<TaskReport> reports;  // the last one of each task
};

/// Runs the job to its end. The exit code is 0 when every task ended well, 1 when one did not, 130
/// when it was interrupted. InvalidArgument, Unavailable or NotFound when it could not be started.
absl::StatusOr<LaunchResult> Launch(const LaunchOptions& options);

/// The state of one launch. Everything happens on the thread that calls Run.
///
///   running   a task that trains ended well    the last one: those that only serve are told to end
///             a task that trains ended badly   the same, and it is said at once
///             a task that serves ended         the job cannot go on: after a grace, in which the
///                                              others say what they miss, all are told to end
///             SIGINT, SIGTERM, SIGHUP          all are told to end; a second one kills
///   ending    the stop timeout is over         whoever is left is killed
///
/// A ps serves; any other task does so when it reports that it has no loop of its own.
class Launcher {
 public:
  explicit Launcher(LaunchOptions options);
  absl::Status Start();
  LaunchResult Run();

 private:
  struct Task {
    Task(Child started, bool ps) : child(std::move(started)), is_ps(ps) {}
    bool serves() const { return is_ps || (report && report->serving); }

    Child child;
    const bool is_ps;
    LineBuffer out, err, reports;
    std::deque<std::string> last_lines;
    bool told_to_end = false;
    bool end_seen = false;
    std::optional<TaskReport> report;
  };
  using Clock = std::chrono::steady_clock;

  absl::Status StartTask(const ClusterSpec& cluster, const TaskId& task);
  void PollOnce();
  void ReadLines(Task& task);
  void ShowOut(Task& task, const std::string& line);
  void ShowErr(Task& task, const std::string& line);
  void TakeReport(Task& task, const std::string& line);
  void NoticeEnds();
  void OnEnd(const Task& task);
  void EndThoseWhoOnlyServe();
  void OnSignal(int signal);
  void TellToEnd(Task& task);
  void TellAllToEnd();
  void EndWhoIsLate();
  void ShowProgress();
  bool AllEnded() const;
  LaunchResult Finish();
  std::string Failures() const;

  const LaunchOptions options_;
  Console console_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<std::string> failed_;  // tasks, the first failure first
  std::unique_ptr<StalenessPoll> staleness_;
  int signal_fd_ = -1;
  int interrupted_by_ = 0;
  std::optional<Clock::time_point> end_at_;  // when all are told to end, for want of a task
  std::optional<Clock::time_point> kill_at_;
  Clock::time_point started_;
  Clock::time_point next_progress_;
  std::uint64_t last_step_ = 0;
  Clock::time_point last_step_at_;
};

}  // namespace weir::cli
