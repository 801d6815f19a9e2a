// The client of the gRPC control plane.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/control_plane.h"
#include "rpc/grpc/call_queue.h"
#include "rpc/grpc/channel.h"
#include "rpc/grpc/options.h"
#include "rpc/grpc/unary_call.h"

namespace weir::rpc {

/// Calls go through `queue`, where replies run. An address that is none
/// makes every call InvalidArgument.
class GrpcClient final : public TaskClient {
 public:
  GrpcClient(const std::string& address, const GrpcOptions& options,
             std::shared_ptr<CallQueue> queue);

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
  /// `request` may be an error, which becomes the reply.
  template <typename Request, typename ReplyMessage, typename Result>
  void Start(const char* name, AsyncMethod<Request, ReplyMessage> method, const Caller& caller,
             const absl::StatusOr<Request>& request, const CallOptions& options,
             std::function<void(Result)> reply);

  const std::string address_;
  const std::shared_ptr<CallQueue> queue_;
  absl::Status bad_address_;
  std::optional<ChannelSource> channels_;  // set unless the address is bad
};

}  // namespace weir::rpc
