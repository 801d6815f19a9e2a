// Which tasks a cluster has and where each can be reached.
//
// A spec is read from a flag, a JSON file or TF_CONFIG, checked as a whole once, and never changes
// afterwards. All types here are values without threads or sockets; no name is looked up.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/host_port.h"
#include "cluster/task.h"

namespace weir {

/// Immutable once parsed. Jobs are kept sorted by name; the tasks of a job may be sparse, and a job
/// may have none.
class ClusterSpec {
 public:
  /// Task index -> address.
  using Job = std::map<int, HostPort>;

  ClusterSpec() = default;

  /// 'ps=h:p,h:p;worker=h:p'; 'worker=1@h:p,3@h:p' gives the indices, 'ps=[]' is a job without
  /// tasks. Every error of the text comes in one InvalidArgument, joined by "; ": empty or
  /// malformed addresses ("ps[1]: empty address"), one address for two tasks ("address A is given
  /// to ps:0 and ps:1"), bad job names, port 0, a loopback name among others' addresses.
  static absl::StatusOr<ClusterSpec> ParseFlag(std::string_view text);

  /// The JSON of a cluster file or of TF_CONFIG's "cluster": {"ps": ["h:p"], "worker": {"1":
  /// "h:p"}}. The same errors, and keys given twice.
  static absl::StatusOr<ClusterSpec> ParseJson(std::string_view json);

  const std::map<std::string, Job>& jobs() const { return jobs_; }
  bool HasJob(std::string_view job) const { return jobs_.find(std::string(job)) != jobs_.end(); }
  /// How many tasks the job has; 0 if there is no such job. Less than the highest index if sparse.
  int NumTasks(std::string_view job) const;
  /// By job and index.
  std::vector<TaskId> AllTasks() const;

  /// NotFound names the jobs of the cluster, or the index range of the job ("job ps has tasks
  /// 0..3").
  absl::StatusOr<HostPort> Address(const TaskId& task) const;

  /// 'ps=h:p,h:p;worker=h:p' again (sparse jobs as 'worker=1@h:p'); equal specs print equally, and
  /// ParseFlag reads it.
  std::string ToString() const;

  /// 64 bits of SHA-256 over `cluster_name` and ToString(); never 0. Tasks that disagree about it
  /// refuse each other.
  std::uint64_t Id(std::string_view cluster_name) const;

  bool operator==(const ClusterSpec&) const = default;

 private:
  friend class SpecDraft;
  explicit ClusterSpec(std::map<std::string, Job> jobs) : jobs_(std::move(jobs)) {}

  std::map<std::string, Job> jobs_;
};

/// A cluster and the task that this process is in it.
struct TaskConfig {
  ClusterSpec cluster;
  TaskId task;

  /// The value of TF_CONFIG: {"cluster": {...}, "task": {"type": "worker", "index": 1}}; other keys
  /// ("environment", "rpc_layer") are left alone. Errors of the cluster and of the task come in one
  /// message; a task that is not in the cluster is refused with the jobs and the index range there
  /// are.
  static absl::StatusOr<TaskConfig> ParseTfConfig(std::string_view json);
  /// InvalidArgument if the task is not in the cluster.
  static absl::StatusOr<TaskConfig> Create(ClusterSpec cluster, TaskId task);
};

/// A random non-zero number drawn once per server: tells a restarted task from its predecessor.
std::uint64_t NewIncarnation();

}  // namespace weir
