// The client of the in-process control plane.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rpc/control_plane.h"
#include "rpc/inproc/call.h"
#include "rpc/inproc/call_list.h"
#include "rpc/inproc/registry.h"
#include "rpc/method.h"

namespace weir::rpc {

/// Calls go through `registry` on `scheduler` (not owned, outlives the calls). `plane_calls` is
/// told of every call, so that the plane can end them.
class InprocClient final : public TaskClient {
 public:
  InprocClient(std::shared_ptr<Registry> registry, Scheduler* scheduler, std::string address,
               std::shared_ptr<CallList> plane_calls);

  void GetStatus(const Caller& caller, bool with_variables, const CallOptions& options,
                 Reply<TaskStatus> reply) override;
  void Announce(const Caller& caller, const CallOptions& options, StatusReply reply) override;
  void EnsureVariables(const Caller& caller, const GraphDef& variables, bool initialize,
                       const CallOptions& options, StatusReply reply) override;
  void RegisterPlan(const Caller& caller, const PlanRegistration& registration,
                    const CallOptions& options, StatusReply reply) override;
  void ReleasePlans(const Caller& caller, std::uint64_t origin,
                    const std::vector<std::uint64_t>& plans, const CallOptions& options,
                    StatusReply reply) override;
  void Reset(const Caller& caller, const std::vector<std::string>& containers,
             const CallOptions& options, StatusReply reply) override;
  void Shutdown(const Caller& caller, const std::string& reason, const CallOptions& options,
                StatusReply reply) override;
  void OpenSession(const Caller& caller, const SessionRequest& request, const CallOptions& options,
                   Reply<SessionReply> reply) override;
  void MakePlan(const Caller& caller, std::uint64_t session, const graph::Signature& signature,
                const CallOptions& options, Reply<PlanReply> reply) override;
  void CloseSession(const Caller& caller, std::uint64_t session, const CallOptions& options,
                    StatusReply reply) override;
  void Poke() override;

 private:
  template <typename Result>
  void Start(const char* name, const Caller& caller, const CallOptions& options,
             Method<Result> method, std::function<void(Result)> reply);

  const std::shared_ptr<Registry> registry_;
  Scheduler* const scheduler_;
  const std::string address_;
  const std::shared_ptr<CallList> plane_calls_;
  CallList calls_;
};

}  // namespace weir::rpc
