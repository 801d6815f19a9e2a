// Requests of the control plane: arguments to messages, and messages to calls of the service.
//
// Writing: one MakeXxxRequest for each method of TaskClient. InvalidArgument where a graph holds
// what cannot travel. Reading: MethodFromProto gives the call that the message asks for, with all
// arguments copied out of the message and checked for their form (graphs as graph_proto.h says);
// InvalidArgument for what no MakeXxxRequest writes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/control_plane.h"
#include "rpc/grpc/weir.pb.h"
#include "rpc/method.h"

namespace weir::rpc {

v1::GetStatusRequest MakeGetStatusRequest(const Caller& caller, bool with_variables);
v1::AnnounceRequest MakeAnnounceRequest(const Caller& caller);
absl::StatusOr<v1::EnsureVariablesRequest> MakeEnsureVariablesRequest(const Caller& caller,
                                                                      const GraphDef& variables,
                                                                      bool initialize);
absl::StatusOr<v1::RegisterPlanRequest> MakeRegisterPlanRequest(
    const Caller& caller, const PlanRegistration& registration);
v1::ReleasePlansRequest MakeReleasePlansRequest(const Caller& caller, std::uint64_t origin,
                                                const std::vector<std::uint64_t>& plans);
v1::ResetRequest MakeResetRequest(const Caller& caller, const std::vector<std::string>& containers);
v1::ShutdownRequest MakeShutdownRequest(const Caller& caller, const std::string& reason);
absl::StatusOr<v1::OpenSessionRequest> MakeOpenSessionRequest(const Caller& caller,
                                                              const SessionRequest& request);
v1::MakePlanRequest MakeMakePlanRequest(const Caller& caller, std::uint64_t session,
                                        const graph::Signature& signature);
v1::CloseSessionRequest MakeCloseSessionRequest(const Caller& caller, std::uint64_t session);

using StatusMethod = Method<absl::Status>;

absl::StatusOr<Method<absl::StatusOr<TaskStatus>>> MethodFromProto(
    const v1::GetStatusRequest& request);
absl::StatusOr<StatusMethod> MethodFromProto(const v1::AnnounceRequest& request);
absl::StatusOr<StatusMethod> MethodFromProto(const v1::EnsureVariablesRequest& request);
absl::StatusOr<StatusMethod> MethodFromProto(const v1::RegisterPlanRequest& request);
absl::StatusOr<StatusMethod> MethodFromProto(const v1::ReleasePlansRequest& request);
absl::StatusOr<StatusMethod> MethodFromProto(const v1::ResetRequest& request);
absl::StatusOr<StatusMethod> MethodFromProto(const v1::ShutdownRequest& request);
absl::StatusOr<Method<absl::StatusOr<SessionReply>>> MethodFromProto(
    const v1::OpenSessionRequest& request);
absl::StatusOr<Method<absl::StatusOr<PlanReply>>> MethodFromProto(
    const v1::MakePlanRequest& request);
absl::StatusOr<StatusMethod> MethodFromProto(const v1::CloseSessionRequest& request);

}  // namespace weir::rpc
