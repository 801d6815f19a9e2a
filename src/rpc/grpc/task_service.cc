#include "rpc/grpc/task_service.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "rpc/grpc/answer.h"
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

template <typename Result, typename ReplyMessage>
grpc::ServerUnaryReactor* Run(Scheduler& threads, TaskService* service,
                              absl::StatusOr<Method<Result>> method, ReplyMessage* reply) {
  const std::shared_ptr<Answer> answer = Answer::New();
  if (!method.ok()) {
    Give(Result(method.status()), reply, *answer);
  } else {
    threads.Post([service, method = *std::move(method), reply, answer]() mutable {
      if (!answer->IsGiven()) Give(method(*service), reply, *answer);
    });
  }
  return answer.get();
}

}  // namespace

GrpcTaskService::GrpcTaskService(TaskService* service, Scheduler* worker, Scheduler* master)
    : service_(service), worker_(worker), master_(master) {}

grpc::ServerUnaryReactor* GrpcTaskService::GetStatus(Context*, const v1::GetStatusRequest* request,
                                                     v1::GetStatusReply* reply) {
  return Run(*worker_, service_, MethodFromProto(*request), reply);
}

grpc::ServerUnaryReactor* GrpcTaskService::Announce(Context*, const v1::AnnounceRequest* request,
                                                    v1::Acknowledgement* reply) {
  return Run(*worker_, service_, MethodFromProto(*request), reply);
}

grpc::ServerUnaryReactor* GrpcTaskService::EnsureVariables(
    Context*, const v1::EnsureVariablesRequest* request, v1::Acknowledgement* reply) {
  return Run(*worker_, service_, MethodFromProto(*request), reply);
}

grpc::ServerUnaryReactor* GrpcTaskService::RegisterPlan(Context*,
                                                        const v1::RegisterPlanRequest* request,
                                                        v1::Acknowledgement* reply) {
  return Run(*worker_, service_, MethodFromProto(*request), reply);
}

grpc::ServerUnaryReactor* GrpcTaskService::ReleasePlans(Context*,
                                                        const v1::ReleasePlansRequest* request,
                                                        v1::Acknowledgement* reply) {
  return Run(*worker_, service_, MethodFromProto(*request), reply);
}

grpc::ServerUnaryReactor* GrpcTaskService::Reset(Context*, const v1::ResetRequest* request,
                                                 v1::Acknowledgement* reply) {
  return Run(*worker_, service_, MethodFromProto(*request), reply);
}

grpc::ServerUnaryReactor* GrpcTaskService::Shutdown(Context*, const v1::ShutdownRequest* request,
                                                    v1::Acknowledgement* reply) {
  return Run(*worker_, service_, MethodFromProto(*request), reply);
}

grpc::ServerUnaryReactor* GrpcTaskService::OpenSession(Context*,
                                                       const v1::OpenSessionRequest* request,
                                                       v1::OpenSessionReply* reply) {
  return Run(*master_, service_, MethodFromProto(*request), reply);
}

grpc::ServerUnaryReactor* GrpcTaskService::MakePlan(Context*, const v1::MakePlanRequest* request,
                                                    v1::MakePlanReply* reply) {
  return Run(*master_, service_, MethodFromProto(*request), reply);
}

grpc::ServerUnaryReactor* GrpcTaskService::CloseSession(Context*,
                                                        const v1::CloseSessionRequest* request,
                                                        v1::Acknowledgement* reply) {
  return Run(*worker_, service_, MethodFromProto(*request), reply);
}

}  // namespace weir::rpc
