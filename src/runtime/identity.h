// Who this process is in a cluster, and the check that two ends agree about it.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "cluster/cluster_spec.h"
#include "cluster/task.h"

namespace weir::runtime {

struct Identity {
  std::uint64_t cluster_id = 0;
  TaskId task;                    // empty job: a client that is no task
  std::uint64_t incarnation = 0;  // never 0

  bool is_client() const { return task.job.empty(); }
  /// "worker:1" or "client 4f..".
  std::string ToString() const;
};

/// What a caller believes: about itself, and about whom it has reached.
struct Claim {
  std::uint64_t cluster_id = 0;  // 0: a client that does not know it
  TaskId from;
  TaskId to;                         // empty job: whoever listens
  std::uint64_t to_incarnation = 0;  // 0: any
};

/// OK, or the refusal for both ends: FailedPrecondition for another cluster, another task than
/// `self`, or a caller that is no task of the cluster; Aborted when `self` is another incarnation
/// than the caller knew (it was restarted).
absl::Status CheckClaim(const Claim& claim, const Identity& self, const ClusterSpec& cluster);

}  // namespace weir::runtime
