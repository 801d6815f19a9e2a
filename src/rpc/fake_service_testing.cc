#include "rpc/fake_service_testing.h"

#include <utility>

#include "base/status.h"

namespace weir::rpc {

bool FakeService::Begin(const char* name, const Caller& from) {
  ++calls;
  on_call();
  if (!record) return false;
  method = name;
  caller = from;
  return true;
}

absl::StatusOr<TaskStatus> FakeService::GetStatus(const Caller& from, bool with_variables) {
  if (Begin("GetStatus", from)) flag = with_variables;
  WEIR_RETURN_IF_ERROR(error);
  return task;
}

absl::Status FakeService::Announce(const Caller& from) {
  Begin("Announce", from);
  return error;
}

absl::Status FakeService::EnsureVariables(const Caller& from, const GraphDef& variables,
                                          bool initialize) {
  if (Begin("EnsureVariables", from)) {
    graph = variables;
    flag = initialize;
  }
  return error;
}

absl::Status FakeService::RegisterPlan(const Caller& from, PlanRegistration brought) {
  if (Begin("RegisterPlan", from)) registration = std::move(brought);
  return error;
}

absl::Status FakeService::ReleasePlans(const Caller& from, std::uint64_t origin,
                                       const std::vector<std::uint64_t>& plans) {
  if (Begin("ReleasePlans", from)) {
    number = origin;
    numbers = plans;
  }
  return error;
}

absl::Status FakeService::Reset(const Caller& from, const std::vector<std::string>& containers) {
  if (Begin("Reset", from)) texts = containers;
  return error;
}

absl::Status FakeService::Shutdown(const Caller& from, const std::string& reason) {
  if (Begin("Shutdown", from)) texts = {reason};
  return error;
}

absl::StatusOr<SessionReply> FakeService::OpenSession(const Caller& from, SessionRequest request) {
  if (Begin("OpenSession", from)) session_request = std::move(request);
  WEIR_RETURN_IF_ERROR(error);
  return session;
}

absl::StatusOr<PlanReply> FakeService::MakePlan(const Caller& from, std::uint64_t session_number,
                                                const graph::Signature& wanted) {
  if (Begin("MakePlan", from)) {
    number = session_number;
    signature = wanted;
  }
  WEIR_RETURN_IF_ERROR(error);
  return plan;
}

absl::Status FakeService::CloseSession(const Caller& from, std::uint64_t session_number) {
  if (Begin("CloseSession", from)) number = session_number;
  return error;
}

}  // namespace weir::rpc
