// A cluster spec while it is being read. Everything that is wrong with it is collected, so that a
// user mends a spec once and not error by error. Internal to this folder: others parse with
// ClusterSpec and TaskConfig.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "cluster/task.h"

namespace weir {

class SpecDraft {
 public:
  /// False, with an error noted, if there is such a job already or the name is none. A job may stay
  /// without tasks.
  bool AddJob(const std::string& job);
  /// REQUIRES: AddJob(job) returned true. An error is noted for a task that is there already and
  /// for an address that is none.
  void AddTask(const std::string& job, int index, std::string_view address);
  /// A task of whose address no more is known than that it is wrong.
  void AddBrokenTask(const std::string& job, int index, const std::string& error);
  void AddError(std::string error) { errors_.push_back(std::move(error)); }

  /// Notes an error if no such task was added. One whose address is bad counts as there: that error
  /// is noted already.
  void RequireTask(const TaskId& task);

  /// The spec, after the checks that need the whole list, or InvalidArgument with every error.
  absl::StatusOr<ClusterSpec> Finish() &&;

 private:
  using Address = std::pair<TaskId, HostPort>;

  HostPort* Declare(const std::string& job, int index);
  void CheckPorts(const std::vector<Address>& addresses);
  void CheckDuplicates(const std::vector<Address>& addresses);
  void CheckLoopback(const std::vector<Address>& addresses);
  /// The tasks that have an address, by job and index.
  std::vector<Address> ReadableAddresses() const;

  std::map<std::string, ClusterSpec::Job> jobs_;  // an address that is none has an empty host
  std::vector<std::string> errors_;
};

/// "ps[1]", the form in which messages about a spec name one of its entries.
std::string EntryName(const std::string& job, int index);

/// Why `task` is not among `jobs`: "there is no task ps:4 in the cluster: job ps has tasks 0..3",
/// or the jobs there are. REQUIRES: it is not.
std::string WhyAbsent(const std::map<std::string, ClusterSpec::Job>& jobs, const TaskId& task);

}  // namespace weir
