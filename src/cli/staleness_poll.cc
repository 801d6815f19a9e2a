#include "cli/staleness_poll.h"

#include <algorithm>
#include <chrono>

#include "cluster/cluster_spec.h"
#include "rpc/grpc/control_plane.h"

namespace weir::cli {
namespace {

constexpr std::chrono::seconds kTimeout{2};

}  // namespace

StalenessPoll::StalenessPoll(const ClusterSpec& cluster)
    : control_plane_(rpc::NewGrpcControlPlane()) {
  const auto found = cluster.jobs().find(cluster.NumTasks("ps") > 0 ? "ps" : "worker");
  if (found == cluster.jobs().end()) return;
  for (const auto& [index, address] : found->second)
    clients_.push_back(control_plane_->NewClient(address.ToString()));
}

void StalenessPoll::Ask() {
  {
    MutexLock lock(shared_->mutex);
    if (shared_->out > 0) return;
    shared_->out = static_cast<int>(clients_.size());
  }
  rpc::Caller caller;
  caller.from_incarnation = 1;
  const TimePoint deadline = std::chrono::steady_clock::now() + kTimeout;
  for (const auto& client : clients_) {
    client->GetStatus(caller, /*with_variables=*/true,
                      {.deadline = deadline, .wait_for_ready = false},
                      [shared = shared_](const absl::StatusOr<rpc::TaskStatus>& status) {
                        MutexLock lock(shared->mutex);
                        --shared->out;
                        if (!status.ok()) return;
                        Answer answer = shared->answer.value_or(Answer{});
                        for (const rpc::VariableStatus& variable : status->variables) {
                          answer.p50 = std::max(answer.p50, variable.staleness.p50);
                          answer.max = std::max(answer.max, variable.staleness.max);
                        }
                        shared->answer = answer;
                      });
  }
}

std::optional<StalenessPoll::Answer> StalenessPoll::latest() const {
  MutexLock lock(shared_->mutex);
  return shared_->answer;
}

}  // namespace weir::cli
