#include "cli/task_liveness.h"

#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "rpc/grpc/control_plane.h"

namespace weir::cli {
namespace {

constexpr std::chrono::seconds kTimeout{2};

}  // namespace

TaskLiveness::TaskLiveness(ClusterSpec cluster)
    : cluster_(std::move(cluster)), control_plane_(rpc::NewGrpcControlPlane()) {}

std::optional<std::uint64_t> TaskLiveness::Incarnation(const TaskId& task) {
  const auto address = cluster_.Address(task);
  if (!address.ok()) return std::nullopt;
  rpc::Caller caller;
  caller.from_incarnation = 1;
  caller.to = task;
  // Shared: the reply may still be leaving set_value when the value is taken.
  const auto answer = std::make_shared<std::promise<std::optional<std::uint64_t>>>();
  control_plane_->NewClient(address->ToString())
      ->GetStatus(
          caller, /*with_variables=*/false,
          {.deadline = std::chrono::steady_clock::now() + kTimeout, .wait_for_ready = false},
          [answer](const absl::StatusOr<rpc::TaskStatus>& status) {
            answer->set_value(status.ok() ? std::optional(status->incarnation) : std::nullopt);
          });
  return answer->get_future().get();
}

}  // namespace weir::cli
