#include "runtime/identity.h"

#include "absl/strings/str_format.h"

namespace weir::runtime {

std::string Identity::ToString() const {
  return is_client() ? absl::StrFormat("client %016x", incarnation) : task.ToString();
}

absl::Status CheckClaim(const Claim& claim, const Identity& self, const ClusterSpec& cluster) {
  const bool from_client = claim.from.job.empty();
  if (claim.cluster_id != self.cluster_id && !(from_client && claim.cluster_id == 0)) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s belongs to cluster %016x, the caller to %016x: both must be started "
                        "with the same cluster spec and job name",
                        self.task.ToString(), self.cluster_id, claim.cluster_id));
  }
  if (!from_client && !cluster.Address(claim.from).ok()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s refuses %s: it is no task of the cluster %s", self.task.ToString(),
                        claim.from.ToString(), cluster.ToString()));
  }
  if (!claim.to.job.empty() && claim.to != self.task) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "expected %s, found %s: the address belongs to another task, check the cluster spec",
        claim.to.ToString(), self.task.ToString()));
  }
  if (!from_client && claim.from == self.task) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s was called by a task that also claims to be %s: it is running already, "
                        "or was started twice",
                        self.task.ToString(), self.task.ToString()));
  }
  if (claim.to_incarnation != 0 && claim.to_incarnation != self.incarnation) {
    return absl::AbortedError(
        absl::StrFormat("%s was restarted: incarnation %016x is gone, %016x lives",
                        self.task.ToString(), claim.to_incarnation, self.incarnation));
  }
  return absl::OkStatus();
}

}  // namespace weir::runtime
