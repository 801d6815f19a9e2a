#include "rpc/checked_service.h"

#include <utility>

#include "base/status.h"
#include "graph/op_registry.h"

namespace weir::rpc {

absl::StatusOr<TaskStatus> CheckedService::GetStatus(const Caller& caller, bool with_variables) {
  return service_->GetStatus(caller, with_variables);
}

absl::Status CheckedService::Announce(const Caller& caller) {
  return service_->Announce(caller);
}

absl::Status CheckedService::EnsureVariables(const Caller& caller, const GraphDef& variables,
                                             bool initialize) {
  WEIR_RETURN_IF_ERROR(graph::Validate(variables, /*allow_internal=*/false));
  return service_->EnsureVariables(caller, variables, initialize);
}

absl::Status CheckedService::RegisterPlan(const Caller& caller, PlanRegistration registration) {
  for (const graph::PartitionDef& partition : registration.partitions) {
    WEIR_RETURN_IF_ERROR(Annotate(graph::Validate(partition.graph, /*allow_internal=*/true),
                                  "partition for " + partition.device));
  }
  return service_->RegisterPlan(caller, std::move(registration));
}

absl::Status CheckedService::ReleasePlans(const Caller& caller, std::uint64_t origin,
                                          const std::vector<std::uint64_t>& plans) {
  return service_->ReleasePlans(caller, origin, plans);
}

absl::Status CheckedService::Reset(const Caller& caller,
                                   const std::vector<std::string>& containers) {
  return service_->Reset(caller, containers);
}

absl::Status CheckedService::Shutdown(const Caller& caller, const std::string& reason) {
  return service_->Shutdown(caller, reason);
}

absl::StatusOr<SessionReply> CheckedService::OpenSession(const Caller& caller,
                                                         SessionRequest request) {
  WEIR_RETURN_IF_ERROR(graph::Validate(request.graph, /*allow_internal=*/false));
  return service_->OpenSession(caller, std::move(request));
}

absl::StatusOr<PlanReply> CheckedService::MakePlan(const Caller& caller, std::uint64_t session,
                                                   const graph::Signature& signature) {
  return service_->MakePlan(caller, session, signature);
}

absl::Status CheckedService::CloseSession(const Caller& caller, std::uint64_t session) {
  return service_->CloseSession(caller, session);
}

}  // namespace weir::rpc
