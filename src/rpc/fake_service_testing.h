// A task that remembers what it was asked and answers what it was told to.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "rpc/control_plane.h"

namespace weir::rpc {

/// Members are for one call at a time: set before it, looked at after its reply. `calls` and
/// `on_call` may be used by several.
struct FakeService final : public TaskService {
  // What the last call brought.
  std::string method;
  Caller caller;
  bool flag = false;
  std::uint64_t number = 0;
  std::vector<std::uint64_t> numbers;
  std::vector<std::string> texts;
  GraphDef graph;
  PlanRegistration registration;
  SessionRequest session_request;
  graph::Signature signature;

  std::atomic<int> calls = 0;

  // What it answers.
  absl::Status error;
  TaskStatus task;
  SessionReply session;
  PlanReply plan;
  /// Runs first in each call, on its thread; `record` = false makes calls leave no trace, so that
  /// several may run at once.
  std::function<void()> on_call = [] {};
  bool record = true;

  absl::StatusOr<TaskStatus> GetStatus(const Caller& from, bool with_variables) override;
  absl::Status Announce(const Caller& from) override;
  absl::Status EnsureVariables(const Caller& from, const GraphDef& variables,
                               bool initialize) override;
  absl::Status RegisterPlan(const Caller& from, PlanRegistration brought) override;
  absl::Status ReleasePlans(const Caller& from, std::uint64_t origin,
                            const std::vector<std::uint64_t>& plans) override;
  absl::Status Reset(const Caller& from, const std::vector<std::string>& containers) override;
  absl::Status Shutdown(const Caller& from, const std::string& reason) override;
  absl::StatusOr<SessionReply> OpenSession(const Caller& from, SessionRequest request) override;
  absl::StatusOr<PlanReply> MakePlan(const Caller& from, std::uint64_t session_number,
                                     const graph::Signature& wanted) override;
  absl::Status CloseSession(const Caller& from, std::uint64_t session_number) override;

 private:
  /// True when the call is to be recorded.
  bool Begin(const char* name, const Caller& from);
};

}  // namespace weir::rpc
