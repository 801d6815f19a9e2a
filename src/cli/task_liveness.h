// Whether a process that was a task of the cluster still is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cluster/cluster_spec.h"
#include "cluster/task.h"
#include "rpc/control_plane.h"

namespace weir::cli {

/// Asks by gRPC, each time on a connection of its own: an earlier one that failed makes nobody wait
/// for its next try.
class TaskLiveness {
 public:
  explicit TaskLiveness(ClusterSpec cluster);

  /// The incarnation that answers for `task`; nullopt when none does. Blocks for up to 2 s, on one
  /// host for some milliseconds.
  std::optional<std::uint64_t> Incarnation(const TaskId& task);

 private:
  const ClusterSpec cluster_;
  const std::unique_ptr<rpc::ControlPlane> control_plane_;
};

}  // namespace weir::cli
