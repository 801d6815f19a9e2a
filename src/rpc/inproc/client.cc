#include "rpc/inproc/client.h"

#include <utility>

namespace weir::rpc {

InprocClient::InprocClient(std::shared_ptr<Registry> registry, Scheduler* scheduler,
                           std::string address, std::shared_ptr<CallList> plane_calls)
    : registry_(std::move(registry)),
      scheduler_(scheduler),
      address_(std::move(address)),
      plane_calls_(std::move(plane_calls)) {}

template <typename Result>
void InprocClient::Start(const char* name, const Caller& caller, const CallOptions& options,
                         Method<Result> method, std::function<void(Result)> reply) {
  const absl::StatusOr<HostPort> address = HostPort::Parse(address_);
  const CallInfo info{name, address_, caller.to, options.wait_for_ready};
  const auto call = std::make_shared<TypedCall<Result>>(
      CallContext{registry_, scheduler_, address.value_or(HostPort{}), options, info},
      std::move(method), std::move(reply));
  if (!address.ok()) return call->Fail(address.status());
  if (!plane_calls_->Add(call)) return call->Fail(info.PlaneClosed());
  calls_.Add(call);
  call->Start();
}

void InprocClient::GetStatus(const Caller& caller, bool with_variables, const CallOptions& options,
                             Reply<TaskStatus> reply) {
  Start<absl::StatusOr<TaskStatus>>(
      "GetStatus", caller, options,
      [=](TaskService& service) { return service.GetStatus(caller, with_variables); },
      std::move(reply));
}

void InprocClient::Announce(const Caller& caller, const CallOptions& options, StatusReply reply) {
  Start<absl::Status>(
      "Announce", caller, options, [=](TaskService& service) { return service.Announce(caller); },
      std::move(reply));
}

void InprocClient::EnsureVariables(const Caller& caller, const GraphDef& variables, bool initialize,
                                   const CallOptions& options, StatusReply reply) {
  Start<absl::Status>(
      "EnsureVariables", caller, options,
      [=](TaskService& service) { return service.EnsureVariables(caller, variables, initialize); },
      std::move(reply));
}

void InprocClient::RegisterPlan(const Caller& caller, const PlanRegistration& registration,
                                const CallOptions& options, StatusReply reply) {
  Start<absl::Status>(
      "RegisterPlan", caller, options,
      [=](TaskService& service) { return service.RegisterPlan(caller, registration); },
      std::move(reply));
}

void InprocClient::ReleasePlans(const Caller& caller, std::uint64_t origin,
                                const std::vector<std::uint64_t>& plans, const CallOptions& options,
                                StatusReply reply) {
  Start<absl::Status>(
      "ReleasePlans", caller, options,
      [=](TaskService& service) { return service.ReleasePlans(caller, origin, plans); },
      std::move(reply));
}

void InprocClient::Reset(const Caller& caller, const std::vector<std::string>& containers,
                         const CallOptions& options, StatusReply reply) {
  Start<absl::Status>(
      "Reset", caller, options,
      [=](TaskService& service) { return service.Reset(caller, containers); }, std::move(reply));
}

void InprocClient::Shutdown(const Caller& caller, const std::string& reason,
                            const CallOptions& options, StatusReply reply) {
  Start<absl::Status>(
      "Shutdown", caller, options,
      [=](TaskService& service) { return service.Shutdown(caller, reason); }, std::move(reply));
}

void InprocClient::OpenSession(const Caller& caller, const SessionRequest& request,
                               const CallOptions& options, Reply<SessionReply> reply) {
  Start<absl::StatusOr<SessionReply>>(
      "OpenSession", caller, options,
      [=](TaskService& service) { return service.OpenSession(caller, request); }, std::move(reply));
}

void InprocClient::MakePlan(const Caller& caller, std::uint64_t session,
                            const graph::Signature& signature, const CallOptions& options,
                            Reply<PlanReply> reply) {
  Start<absl::StatusOr<PlanReply>>(
      "MakePlan", caller, options,
      [=](TaskService& service) { return service.MakePlan(caller, session, signature); },
      std::move(reply));
}

void InprocClient::CloseSession(const Caller& caller, std::uint64_t session,
                                const CallOptions& options, StatusReply reply) {
  Start<absl::Status>(
      "CloseSession", caller, options,
      [=](TaskService& service) { return service.CloseSession(caller, session); },
      std::move(reply));
}

void InprocClient::Poke() {
  for (const std::shared_ptr<Call>& call : calls_.Alive()) {
    scheduler_->Post([call] { call->Try(); });
  }
}

}  // namespace weir::rpc
