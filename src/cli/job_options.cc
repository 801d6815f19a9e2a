#include "cli/job_options.h"

#include <CLI/CLI.hpp>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cli/flag_checks.h"
#include "cli/free_port.h"

namespace weir::cli {
namespace {

constexpr int kThreadsMax = 1024;
constexpr int kWorkersMax = 1'000'000;
constexpr std::int64_t kStepsMax = 1'000'000'000'000'000;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return absl::NotFoundError("cannot read the cluster file '" + path + "'");
  return text.str();
}

absl::StatusOr<ClusterSpec> ClusterFromFlags(const JobOptions& options) {
  if (!options.cluster.empty() && !options.cluster_file.empty()) {
    return absl::InvalidArgumentError("--cluster and --cluster-file exclude each other");
  }
  if (!options.cluster.empty()) return ClusterSpec::ParseFlag(options.cluster);
  WEIR_ASSIGN_OR_RETURN(const std::string json, ReadFile(options.cluster_file));
  return ClusterSpec::ParseJson(json);
}

}  // namespace

void AddJobFlags(CLI::App& app, JobOptions& options) {
  const std::string role = "Role";
  app.add_option("--cluster", options.cluster, "Every task's address: 'ps=h:p,h:p;worker=h:p'")
      ->group(role);
  app.add_option("--cluster-file", options.cluster_file,
                 "The same from a JSON file: {\"ps\": [\"h:p\"], ...}")
      ->group(role);
  app.add_option("--job", options.job, "This task's job, such as ps or worker")->group(role);
  app.add_option("--task", options.task, "This task's index in its job")->group(role);
  app.add_option("--cluster-name", options.cluster_name, "Jobs of another name refuse each other")
      ->group(role)
      ->capture_default_str();

  const std::string network = "Network";
  app.add_option("--bind", options.bind_host, "Address of this host to listen on")
      ->group(network)
      ->capture_default_str();
  app.add_flag("--insecure", options.insecure,
               "Allow a --bind that is not loopback: no encryption, no authentication")
      ->group(network);
  app.add_option("--data-port", options.data_port, "Port of the data plane; 0: any free one")
      ->group(network)
      ->capture_default_str()
      ->check(PortFlag());
  app.add_option("--start-timeout", options.start_timeout_s,
                 "Seconds to wait for the tasks a plan needs")
      ->group(network)
      ->capture_default_str()
      ->check(SecondsFlag());
  app.add_option("--connect-timeout", options.connect_timeout_s, "Seconds for one connection")
      ->group(network)
      ->capture_default_str()
      ->check(SecondsFlag());
  app.add_option("--step-timeout", options.step_timeout_s, "Seconds for one step")
      ->group(network)
      ->capture_default_str()
      ->check(SecondsFlag());
  app.add_option("--stop-timeout", options.stop_timeout_s, "Seconds for an orderly end")
      ->group(network)
      ->capture_default_str()
      ->check(SecondsFlag());

  const std::string training = "Training";
  app.add_option("--steps", options.steps, "Training steps of all workers together; -1: no limit")
      ->group(training)
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{-1}, kStepsMax));
  app.add_option("--wait-for-workers", options.wait_for_workers,
                 "Begin when this many workers are ready; 0: at once, -1: as the program says")
      ->group(training)
      ->capture_default_str()
      ->check(CLI::Range(-1, kWorkersMax));
  app.add_option("--threads", options.threads, "Computing threads of this task")
      ->group(training)
      ->capture_default_str()
      ->check(CLI::Range(1, kThreadsMax));
  app.add_option("--io-threads", options.io_threads, "Data-plane threads of this task")
      ->group(training)
      ->capture_default_str()
      ->check(CLI::Range(1, kThreadsMax));

  const std::string output = "Output";
  app.add_option("--summary", options.summary, "Write what happened to this file, as JSON")
      ->group(output)
      ->check(WritableFile());
  app.add_option("--log-level", options.log_level, "debug, info, warning, error or off")
      ->group(output)
      ->capture_default_str();
  app.add_flag("--no-progress", options.no_progress, "No progress lines")->group(output);
}

absl::StatusOr<JobOptions> TakeJobFlags(int* argc, char** argv, JobOptions defaults) {
  JobOptions options = std::move(defaults);
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  AddJobFlags(app, options);
  std::vector<std::string> arguments(argv + 1, argv + *argc);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  // What is left keeps its order and points at the original strings.
  const std::vector<std::string> left = app.remaining();
  int kept = 1;
  std::size_t next = 0;
  for (int i = 1; i < *argc && next < left.size(); ++i) {
    if (left[next] != argv[i]) continue;
    argv[kept++] = argv[i];
    ++next;
  }
  argv[kept] = nullptr;
  *argc = kept;
  return options;
}

StartedTogether FindStartedTogether(const std::function<const char*(const char*)>& get) {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const value = get(variable);
    int size = 0;
    if (value != nullptr && absl::SimpleAtoi(value, &size) && size > 1) return {size, variable};
  }
  return {};
}

absl::StatusOr<Role> FindRole(const JobOptions& options, const char* tf_config,
                              const StartedTogether& together) {
  if (!options.cluster.empty() || !options.cluster_file.empty()) {
    WEIR_ASSIGN_OR_RETURN(ClusterSpec cluster, ClusterFromFlags(options));
    if (options.job.empty() || options.task < 0) {
      return absl::InvalidArgumentError(
          "a cluster without --job and --task: which of its tasks is this?");
    }
    WEIR_ASSIGN_OR_RETURN(TaskConfig config,
                          TaskConfig::Create(std::move(cluster), {options.job, options.task}));
    return Role{std::move(config), options.cluster.empty() ? "--cluster-file" : "--cluster"};
  }
  if (!options.job.empty() || options.task >= 0) {
    return absl::InvalidArgumentError("--job and --task need a --cluster or a --cluster-file");
  }
  if (tf_config != nullptr && *tf_config != '\0') {
    WEIR_ASSIGN_OR_RETURN(TaskConfig config, TaskConfig::ParseTfConfig(tf_config));
    return Role{std::move(config), "TF_CONFIG"};
  }
  if (together.size > 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        together.variable, " says that ", together.size,
        " processes were started together, but this one would be a cluster of its own, 1 of 1, and "
        "so would each of them: Weir takes no role from MPI, give each --cluster, --job and "
        "--task, or TF_CONFIG"));
  }
  WEIR_ASSIGN_OR_RETURN(const ReservedPorts reserved, ReservedPorts::Find(1));
  WEIR_ASSIGN_OR_RETURN(ClusterSpec cluster, ClusterSpec::ParseFlag(absl::StrCat(
                                                 "worker=127.0.0.1:", reserved.ports()[0])));
  WEIR_ASSIGN_OR_RETURN(TaskConfig config, TaskConfig::Create(std::move(cluster), {"worker", 0}));
  return Role{std::move(config), "a cluster of its own"};
}

absl::StatusOr<LogLevel> ParseLogLevel(const std::string& text) {
  if (text == "debug") return LogLevel::kDebug;
  if (text == "info") return LogLevel::kInfo;
  if (text == "warning") return LogLevel::kWarning;
  if (text == "error") return LogLevel::kError;
  if (text == "off") return LogLevel::kOff;
  return absl::InvalidArgumentError("--log-level '" + text +
                                    "': expected debug, info, warning, error or off");
}

}  // namespace weir::cli
