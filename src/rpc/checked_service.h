// The gate between the network and a task: graphs are checked here, once for every control plane.
#pragma once

#include <string>
#include <vector>

#include "rpc/control_plane.h"

namespace weir::rpc {

/// Passes calls on to another service (not owned), graphs only if graph::Validate accepts them: a
/// session's graph and variables as users may write them, a plan's partitions with the ops that
/// passes insert. What is refused gets InvalidArgument. Thread-safe as the other service is.
class CheckedService final : public TaskService {
 public:
  explicit CheckedService(TaskService* service) : service_(service) {}

  absl::StatusOr<TaskStatus> GetStatus(const Caller& caller, bool with_variables) override;
  absl::Status Announce(const Caller& caller) override;
  absl::Status EnsureVariables(const Caller& caller, const GraphDef& variables,
                               bool initialize) override;
  absl::Status RegisterPlan(const Caller& caller, PlanRegistration registration) override;
  absl::Status ReleasePlans(const Caller& caller, std::uint64_t origin,
                            const std::vector<std::uint64_t>& plans) override;
  absl::Status Reset(const Caller& caller, const std::vector<std::string>& containers) override;
  absl::Status Shutdown(const Caller& caller, const std::string& reason) override;
  absl::StatusOr<SessionReply> OpenSession(const Caller& caller, SessionRequest request) override;
  absl::StatusOr<PlanReply> MakePlan(const Caller& caller, std::uint64_t session,
                                     const graph::Signature& signature) override;
  absl::Status CloseSession(const Caller& caller, std::uint64_t session) override;

 private:
  TaskService* const service_;
};

}  // namespace weir::rpc
