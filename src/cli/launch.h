// `weir launch`: a local cluster of one program, from its start to its end.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/console.h"
#include "cli/free_port.h"
#include "cli/launch_progress.h"
#include "cli/launched_task.h"
#include "cli/report.h"
#include "cluster/cluster_spec.h"

namespace weir::cli {

struct LaunchOptions {
  int ps = 1;
  int workers = 1;
  std::vector<std::string> command;
  std::string summary;
  double stop_timeout_s = 5;
  bool no_progress = false;
  /// Tells what would be started, on standard output, and starts nothing.
  bool dry_run = false;
  /// Nothing is shown unless something fails; for benchmarks.
  bool quiet = false;
};

struct LaunchResult {
  int exit_code = 0;
  std::vector<TaskReport> reports;  // the last one of each task
};

/// Runs the job to its end; a dry run starts nothing, takes no port and has exit code 0. The exit
/// code is 0 when every task ended well, 1 when one did not, 128
/// and the signal's number when it was interrupted. InvalidArgument, Unavailable or NotFound when
/// it could not be started.
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
/// A task that was told to end may do so by the signal that told it.
class Launcher {
 public:
  explicit Launcher(LaunchOptions options) : options_(std::move(options)) {}
  ~Launcher();
  absl::Status Start();
  LaunchResult Run();

 private:
  using Clock = std::chrono::steady_clock;

  absl::Status StartTask(const ClusterSpec& cluster, const TaskId& task);
  void PollOnce();
  void NoticeEnds();
  void OnEnd(const LaunchedTask& task);
  void EndThoseWhoOnlyServe();
  void EndThoseWhoWaitInVain();
  void OnSignal(int signal);
  void TellAllToEnd();
  void EndWhoIsLate();
  bool AllEnded() const;
  std::vector<TaskReport> Reports() const;
  LaunchResult Finish();
  std::string Failures() const;

  const LaunchOptions options_;
  const Clock::time_point started_ = Clock::now();
  Console console_;
  std::optional<ReservedPorts> ports_;
  std::vector<std::unique_ptr<LaunchedTask>> tasks_;
  std::vector<const LaunchedTask*> failed_;  // the first failure first
  std::optional<LaunchProgress> progress_;   // where it is shown
  int signal_fd_ = -1;
  int interrupted_by_ = 0;
  std::optional<Clock::time_point> end_at_;  // when all are told to end, for want of a task
  std::optional<Clock::time_point> kill_at_;
};

}  // namespace weir::cli
