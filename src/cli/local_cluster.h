// A cluster on this host, and how each of its tasks is told which one it is.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "cluster/task.h"

namespace weir::cli {

/// `ps` and `workers` tasks on free ports of 127.0.0.1. Unavailable when there are too few.
absl::StatusOr<ClusterSpec> LocalCluster(int ps, int workers);

/// The value of TF_CONFIG for `task`.
std::string TfConfig(const ClusterSpec& cluster, const TaskId& task);

}  // namespace weir::cli
