// The gRPC service of a task.
#pragma once

#include <functional>

#include "base/scheduler.h"
#include "rpc/control_plane.h"
#include "rpc/grpc/weir.grpc.pb.h"

namespace weir::rpc {

/// Hands calls to a TaskService on the threads of two schedulers: those that wait for other tasks
/// run on `master`, all others on `worker`. So a task whose masters wait still answers the masters
/// of others, and two tasks that wait for each other do not wait for ever. Messages are read on
/// gRPC's threads. Nothing is owned.
class GrpcTaskService final : public v1::Task::CallbackService {
 public:
  GrpcTaskService(TaskService* service, Scheduler* worker, Scheduler* master);

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* GetStatus(Context* context, const v1::GetStatusRequest* request,
                     v1::GetStatusReply* reply) override;
  Reactor* Announce(Context* context, const v1::AnnounceRequest* request,
                    v1::Acknowledgement* reply) override;
  Reactor* EnsureVariables(Context* context, const v1::EnsureVariablesRequest* request,
                           v1::Acknowledgement* reply) override;
  Reactor* RegisterPlan(Context* context, const v1::RegisterPlanRequest* request,
                        v1::Acknowledgement* reply) override;
  Reactor* ReleasePlans(Context* context, const v1::ReleasePlansRequest* request,
                        v1::Acknowledgement* reply) override;
  Reactor* Reset(Context* context, const v1::ResetRequest* request,
                 v1::Acknowledgement* reply) override;
  Reactor* Shutdown(Context* context, const v1::ShutdownRequest* request,
                    v1::Acknowledgement* reply) override;
  Reactor* OpenSession(Context* context, const v1::OpenSessionRequest* request,
                       v1::OpenSessionReply* reply) override;
  Reactor* MakePlan(Context* context, const v1::MakePlanRequest* request,
                    v1::MakePlanReply* reply) override;
  Reactor* CloseSession(Context* context, const v1::CloseSessionRequest* request,
                        v1::Acknowledgement* reply) override;

 private:
  TaskService* const service_;
  Scheduler* const worker_;
  Scheduler* const master_;
};

}  // namespace weir::rpc
