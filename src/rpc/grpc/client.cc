#include "rpc/grpc/client.h"

#include <utility>

#include "cluster/host_port.h"
#include "rpc/grpc/request_proto.h"

namespace weir::rpc {

using Stub = v1::Task::Stub;

GrpcClient::GrpcClient(const std::string& address, const GrpcOptions& options,
                       std::shared_ptr<CallQueue> queue)
    : address_(address), queue_(std::move(queue)) {
  const absl::StatusOr<HostPort> parsed = HostPort::Parse(address);
  if (parsed.ok()) {
    channels_.emplace(*parsed, options);
  } else {
    bad_address_ = parsed.status();
  }
}

template <typename Request, typename ReplyMessage, typename Result>
void GrpcClient::Start(const char* name, AsyncMethod<Request, ReplyMessage> method,
                       const Caller& caller, const absl::StatusOr<Request>& request,
                       const CallOptions& options, std::function<void(Result)> reply) {
  const auto call = std::make_shared<UnaryCall<Request, ReplyMessage, Result>>(
      CallInfo{name, address_, caller.to, options.wait_for_ready}, queue_, std::move(reply));
  if (!channels_.has_value()) return call->FailSoon(bad_address_);
  call->Start(method, request, channels_->ChannelFor(options.wait_for_ready), options);
}

void GrpcClient::GetStatus(const Caller& caller, bool with_variables, const CallOptions& options,
                           Reply<TaskStatus> reply) {
  Start<v1::GetStatusRequest, v1::GetStatusReply>("GetStatus", &Stub::PrepareAsyncGetStatus, caller,
                                                  MakeGetStatusRequest(caller, with_variables),
                                                  options, std::move(reply));
}

void GrpcClient::Announce(const Caller& caller, const CallOptions& options, StatusReply reply) {
  Start<v1::AnnounceRequest, v1::Acknowledgement>("Announce", &Stub::PrepareAsyncAnnounce, caller,
                                                  MakeAnnounceRequest(caller), options,
                                                  std::move(reply));
}

void GrpcClient::EnsureVariables(const Caller& caller, const GraphDef& variables, bool initialize,
                                 const CallOptions& options, StatusReply reply) {
  Start<v1::EnsureVariablesRequest, v1::Acknowledgement>(
      "EnsureVariables", &Stub::PrepareAsyncEnsureVariables, caller,
      MakeEnsureVariablesRequest(caller, variables, initialize), options, std::move(reply));
}

void GrpcClient::RegisterPlan(const Caller& caller, const PlanRegistration& registration,
                              const CallOptions& options, StatusReply reply) {
  Start<v1::RegisterPlanRequest, v1::Acknowledgement>(
      "RegisterPlan", &Stub::PrepareAsyncRegisterPlan, caller,
      MakeRegisterPlanRequest(caller, registration), options, std::move(reply));
}

void GrpcClient::ReleasePlans(const Caller& caller, std::uint64_t origin,
                              const std::vector<std::uint64_t>& plans, const CallOptions& options,
                              StatusReply reply) {
  Start<v1::ReleasePlansRequest, v1::Acknowledgement>(
      "ReleasePlans", &Stub::PrepareAsyncReleasePlans, caller,
      MakeReleasePlansRequest(caller, origin, plans), options, std::move(reply));
}

void GrpcClient::Reset(const Caller& caller, const std::vector<std::string>& containers,
                       const CallOptions& options, StatusReply reply) {
  Start<v1::ResetRequest, v1::Acknowledgement>("Reset", &Stub::PrepareAsyncReset, caller,
                                               MakeResetRequest(caller, containers), options,
                                               std::move(reply));
}

void GrpcClient::Shutdown(const Caller& caller, const std::string& reason,
                          const CallOptions& options, StatusReply reply) {
  Start<v1::ShutdownRequest, v1::Acknowledgement>("Shutdown", &Stub::PrepareAsyncShutdown, caller,
                                                  MakeShutdownRequest(caller, reason), options,
                                                  std::move(reply));
}

void GrpcClient::OpenSession(const Caller& caller, const SessionRequest& request,
                             const CallOptions& options, Reply<SessionReply> reply) {
  Start<v1::OpenSessionRequest, v1::OpenSessionReply>(
      "OpenSession", &Stub::PrepareAsyncOpenSession, caller,
      MakeOpenSessionRequest(caller, request), options, std::move(reply));
}

void GrpcClient::MakePlan(const Caller& caller, std::uint64_t session,
                          const graph::Signature& signature, const CallOptions& options,
                          Reply<PlanReply> reply) {
  Start<v1::MakePlanRequest, v1::MakePlanReply>("MakePlan", &Stub::PrepareAsyncMakePlan, caller,
                                                MakeMakePlanRequest(caller, session, signature),
                                                options, std::move(reply));
}

void GrpcClient::CloseSession(const Caller& caller, std::uint64_t session,
                              const CallOptions& options, StatusReply reply) {
  Start<v1::CloseSessionRequest, v1::Acknowledgement>(
      "CloseSession", &Stub::PrepareAsyncCloseSession, caller,
      MakeCloseSessionRequest(caller, session), options, std::move(reply));
}

void GrpcClient::Poke() {
  if (channels_.has_value()) channels_->Poke();
}

}  // namespace weir::rpc
