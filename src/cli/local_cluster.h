// A cluster on this host, and how each of its tasks is told which one it is.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "cluster/task.h"

namespace weir::cli {

/// `ports` of 127.0.0.1 go to `ps` ps tasks and then to workers.
absl::StatusOr<ClusterSpec> LocalCluster(int ps, const std::vector<int>& ports);

/// The value of TF_CONFIG for `task`.
std::string TfConfig(const ClusterSpec& cluster, const TaskId& task);

}  // namespace weir::cli
