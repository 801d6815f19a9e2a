// Which tasks a cluster has and where each can be reached.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/task.h"

namespace weir {

struct HostPort {
  std::string host;  // without brackets
  int port = 0;

  /// "host:port" or "[v6]:port"; outer blanks are trimmed. InvalidArgument quotes the text. Port 0
  /// is accepted here; a fixed cluster list refuses it.
  static absl::StatusOr<HostPort> Parse(std::string_view text);
  /// An IPv6 host is printed in brackets.
  std::string ToString() const;
  bool IsLoopback() const;
  bool operator==(const HostPort&) const = default;
};

/// Immutable once parsed. Jobs are kept sorted by name; the tasks of a job may be sparse.
class ClusterSpec {
 public:
  /// Task index -> address.
  using Job = std::map<int, HostPort>;

  ClusterSpec() = default;

  /// 'ps=h:p,h:p;worker=h:p'. Every error of the text comes in one InvalidArgument, joined by "; ":
  /// empty or malformed addresses ("ps[1]: empty address"), one address for two tasks ("address A
  /// is given to ps:0 and ps:1"), bad job names, port 0, a loopback name among others' addresses.
  static absl::StatusOr<ClusterSpec> ParseFlag(std::string_view text);

  /// The JSON of a cluster file or of TF_CONFIG's "cluster": {"ps": ["h:p"], "worker": {"1":
  /// "h:p"}}
  static absl::StatusOr<ClusterSpec> ParseJson(std::string_view json);

  const std::map<std::string, Job>& jobs() const { return jobs_; }
  bool HasJob(std::string_view job) const { return jobs_.find(std::string(job)) != jobs_.end(); }
  int NumTasks(std::string_view job) const;
  std::vector<TaskId> AllTasks() const;

  /// NotFound names the jobs of the cluster, or the index range of the job ("job ps has tasks
  /// 0..3").
  absl::StatusOr<HostPort> Address(const TaskId& task) const;

  /// 'ps=h:p,h:p;worker=h:p' again (sparse jobs as 'worker=1@h:p'); equal specs print equally.
  std::string ToString() const;

  /// 64 bits of SHA-256 over `job_name` and ToString(); never 0. Tasks that disagree about it
  /// refuse each other.
  std::uint64_t Id(std::string_view cluster_name) const;

  bool operator==(const ClusterSpec&) const = default;

 private:
  std::map<std::string, Job> jobs_;
};

/// A cluster and the task that this process is in it.
struct TaskConfig {
  ClusterSpec cluster;
  TaskId task;

  /// The value of TF_CONFIG: {"cluster": {...}, "task": {"type": "worker", "index": 1}}. Errors of
  /// the cluster and of the task come in one message; a task that is not in the cluster is refused
  /// with the jobs and the index range there are.
  static absl::StatusOr<TaskConfig> ParseTfConfig(std::string_view json);
  static absl::StatusOr<TaskConfig> Create(ClusterSpec cluster, TaskId task);
};

/// A random non-zero number drawn once per server: tells a restarted task from its predecessor.
std::uint64_t NewIncarnation();

}  // namespace weir
