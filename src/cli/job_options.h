// The flags every Weir program takes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "base/log.h"
#include "cluster/cluster_spec.h"

namespace CLI {
class App;
}  // namespace CLI

namespace weir::cli {

struct JobOptions {
  // Role.
  std::string cluster;       // 'ps=h:p,h:p;worker=h:p'
  std::string cluster_file;  // JSON
  std::string job;
  int task = -1;
  std::string cluster_name = "weir";
  // Network.
  std::string bind_host = "127.0.0.1";
  bool insecure = false;
  int data_port = 0;
  // Deadlines, in seconds: 0.001 to 1,000,000.
  double start_timeout_s = 60;
  double connect_timeout_s = 10;
  double step_timeout_s = 600;
  double stop_timeout_s = 5;
  // Training.
  std::int64_t steps = -1;
  int wait_for_workers = -1;  // -1: as the program says
  int threads = 1;
  int io_threads = 1;
  // What a user sees.
  std::string summary;
  std::string log_level = "info";
  bool no_progress = false;
};

/// Adds the flags to `app`, in groups.
void AddJobFlags(CLI::App& app, JobOptions& options);

/// Parses and removes Weir's flags; what is left stays in argc/argv for the program. A flag that is
/// not there keeps its value in `defaults`. InvalidArgument with CLI11's text.
absl::StatusOr<JobOptions> TakeJobFlags(int* argc, char** argv, JobOptions defaults = {});

/// Where a role was found, for the line that says so.
struct Role {
  TaskConfig config;
  std::string source;  // "--cluster", "--cluster-file", "TF_CONFIG", "a cluster of its own"
};

/// What mpirun and its like tell a process: it is one of `size`.
struct StartedTogether {
  int size = 1;
  std::string variable;  // that says so
};
/// From OMPI_COMM_WORLD_SIZE or PMI_SIZE; `get` looks a variable up as std::getenv does.
StartedTogether FindStartedTogether(const std::function<const char*(const char*)>& get);

/// Flags first, then `tf_config` (the variable's value, null when it is not set), else a cluster of
/// one worker on a free port. Of several processes that were started together none may be a cluster
/// of its own: that is FailedPrecondition.
absl::StatusOr<Role> FindRole(const JobOptions& options, const char* tf_config,
                              const StartedTogether& together = {});

absl::StatusOr<LogLevel> ParseLogLevel(const std::string& text);

}  // namespace weir::cli
