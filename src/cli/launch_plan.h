// What `weir launch` would start: each task's place and environment, and the same as text.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/cluster_spec.h"
#include "cluster/task.h"

namespace weir::cli {

/// What is added to the launcher's own environment for `task`. The number of the pipe for reports
/// is not in it: that is known when the task is started.
std::map<std::string, std::string> TaskEnvironment(const ClusterSpec& cluster, const TaskId& task);

/// The spec, and for every task its address, environment and command: lines that a shell takes.
std::string DescribeLaunch(const ClusterSpec& cluster, const std::vector<std::string>& command);

}  // namespace weir::cli
