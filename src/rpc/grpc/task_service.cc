#include "rpc/grpc/task_service.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "rpc/grpc/answer.h"
#include "rpc/grpc/deadline.h"
#include "rpc/grpc/reply_proto.h"
#include "rpc/grpc/request_proto.h"
#include "rpc/method.h"

namespace weir::rpc {
namespace {

template <typename Result, typename ReplyMessage>
void Give(const Result& result, ReplyMessage* reply, Answer& answer) {
  if (!answer.Claim()) return;
  ToProto(result, reply);
  answer.Finish(grpc::Status::OK);
}

void GiveUp(Answer& answer) {
  if (answer.Claim()) {
    answer.Finish(
        {grpc::StatusCode::DEADLINE_EXCEEDED, "nobody had time for it until its deadline"});
  }
}

/// Looks at the deadline itself: gRPC's word of it may come later than a thread that is free.
template <typename Result, typename ReplyMessage>
grpc::ServerUnaryReactor* Run(Scheduler& threads, const grpc::CallbackServerContext& context,
                              TaskService* service, absl::StatusOr<Method<Result>> method,
                              ReplyMessage* reply) {
  const std::shared_ptr<Answer> answer = Answer::New();
  if (!method.ok()) {
    Give(Result(method.status()), reply, *answer);
    return answer.get();
  }
  threads.Post(
      [service, method = *std::move(method), reply, answer, deadline = context.raw_deadline()] {
        if (answer->IsGiven()) return;
        if (HasPassed(deadline)) return GiveUp(*answer);
        Give(method(*service), reply, *answer);
      });
  return answer.get();
}

}  // namespace

GrpcTaskService::GrpcTaskService(TaskService* service, Scheduler* worker, Scheduler* master)
    : service_(service), worker_(worker), master_(master) {}

grpc::ServerUnaryReactor* GrpcTaskService::GetStatus(Context* context,
                                                     const v1::GetStatusRequest* request,
                                                     v1::GetStatusReply* reply) {
  return Run(*worker_, *context, service_, MethodFromProto(*request), reply);
}

grpc::ServerUnaryReactor* GrpcTaskService::Announce(Context* context,
                                                    const v1::AnnounceRequest* request,
                                                    v1::Acknowledgement* reply) {
  return Run(*worker_, *context, service_, MethodFromProto(*request), reply);
}

grpc::ServerUnaryReactor* GrpcTaskService::EnsureVariables(
    Context* context, const v1::EnsureVariablesRequest* request, v1::Acknowledgement* reply) {
  return Run(*worker_, *context, service_, MethodFromProto(*request), reply);
}

grpc::ServerUnaryReactor* GrpcTaskService::RegisterPlan(Context* context,
                                                        const v1::RegisterPlanRequest* request,
                                                        v1::Acknowledgement* reply) {
  return Run(*worker_, *context, service_, MethodFromProto(*request), reply);
}

grpc::ServerUnaryReactor* GrpcTaskService::ReleasePlans(Context* context,
                                                        const v1::ReleasePlansRequest* request,
                                                        v1::Acknowledgement* reply) {
  return Run(*worker_, *context, service_, MethodFromProto(*request), reply);
}

grpc::ServerUnaryReactor* GrpcTaskService::Reset(Context* context, const v1::ResetRequest* request,
                                                 v1::Acknowledgement* reply) {
  return Run(*worker_, *context, service_, MethodFromProto(*request), reply);
}

grpc::ServerUnaryReactor* GrpcTaskService::Shutdown(Context* context,
                                                    const v1::ShutdownRequest* request,
                                                    v1::Acknowledgement* reply) {
  return Run(*worker_, *context, service_, MethodFromProto(*request), reply);
}

grpc::ServerUnaryReactor* GrpcTaskService::OpenSession(Context* context,
                                                       const v1::OpenSessionRequest* request,
                                                       v1::OpenSessionReply* reply) {
  return Run(*master_, *context, service_, MethodFromProto(*request), reply);
}

grpc::ServerUnaryReactor* GrpcTaskService::MakePlan(Context* context,
                                                    const v1::MakePlanRequest* request,
                                                    v1::MakePlanReply* reply) {
  return Run(*master_, *context, service_, MethodFromProto(*request), reply);
}

grpc::ServerUnaryReactor* GrpcTaskService::CloseSession(Context* context,
                                                        const v1::CloseSessionRequest* request,
                                                        v1::Acknowledgement* reply) {
  return Run(*worker_, *context, service_, MethodFromProto(*request), reply);
}

}  // namespace weir::rpc
