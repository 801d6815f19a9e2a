// A program's place in a cluster: who this task is, its server, and what a training program needs
// around its loop.
//
//   auto job = weir::Job::FromCommandLine(&argc, argv);
//   if (!job.ok()) return weir::Exit(job.status());
//   if (job->is_ps()) return job->Serve();
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "weir/device_setter.h"
#include "weir/graph.h"
#include "weir/session.h"
#include "weir/strategy.h"

namespace weir {

/// What a program's own flags begin with.
struct JobDefaults {
  std::int64_t steps = -1;  // --steps; -1: no limit
};

/// Move-only; one for a process. It starts a server, which ends with it.
class Job {
 public:
  /// Takes Weir's own flags out of argc/argv (FlagsHelp lists them) and starts this task's server.
  /// The role comes from
  /// --cluster, --job and --task, or a --cluster-file, or else TF_CONFIG; without any of them the
  /// program is a cluster of its own with one worker. The choice is logged. Where help is wanted it
  /// starts nothing, and the status makes Exit print FlagsHelp.
  static absl::StatusOr<Job> FromCommandLine(int* argc, char** argv,
                                             const JobDefaults& defaults = {});
  /// Is --help or -h among the arguments? For programs that have flags of their own to tell of.
  static bool WantsHelp(int argc, char* const* argv);
  /// For a program's --help.
  static std::string FlagsHelp(const JobDefaults& defaults = {});

  Job(Job&&) noexcept;
  Job& operator=(Job&&) noexcept;
  /// Closes the server; tells the launcher what this task did.
  ~Job();

  /// True for a task of the job "ps": it serves variables and runs no loop of its own.
  bool is_ps() const;
  std::string job() const;
  int task() const;
  int num_tasks(const std::string& job) const;
  /// "/job:worker/task:0".
  std::string device() const;

  /// Serves until told to end (SIGTERM, SIGINT, or a shutdown over the control plane); returns the
  /// exit code.
  int Serve();

  /// Variables on the ps tasks, the rest on this worker; no device function where the cluster has
  /// no ps.
  DeviceFunction ReplicaDeviceSetter(
      PlacementStrategy strategy = PlacementStrategy::kGreedyBytes) const;
  /// The chosen strategy: asynchronous, stopping at --steps.
  Strategy& strategy();

  /// OpenSession waits until this many workers run that have opened theirs, unless
  /// --wait-for-workers says otherwise. One that comes back while the others train does not wait.
  void WaitForWorkers(int workers);

  /// A session on this task's master; with --wait-for-workers it returns when that many workers
  /// have opened theirs. `graph` must outlive it. The timeouts of `options` are those of the flags
  /// --start-timeout and --step-timeout, whatever it says.
  absl::StatusOr<Session> OpenSession(Graph& graph, SessionOptions options = {});

  /// Closes the session at the end of this worker's loop. Where WaitForWorkers said how many there
  /// are, a worker that owns variables first waits, up to the start timeout, until all others have
  /// called this or are no more.
  absl::Status Finish(Session& session);

  /// Asks every other task of the cluster that serves to end. A launcher does this by itself for
  /// its ps tasks.
  void EndJob();

  /// A result for the summary of the launcher (--summary), under `name`: "test_accuracy".
  void Report(const std::string& name, double value);

  /// Bytes this task has sent and received on the data plane since its start.
  std::uint64_t data_plane_bytes() const;

  /// The number of steps at which training stops; -1: no limit.
  std::int64_t step_limit() const;

 private:
  class Impl;
  explicit Job(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The exit code for a status: 0 for OK and for OutOfRange (the step limit is reached: training is
/// over), and with the text on stdout where --help was asked for; else 1 with the status on stderr.
int Exit(const absl::Status& status);

}  // namespace weir
