// One call of the gRPC client.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/async_unary_call.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/scheduler.h"
#include "rpc/call_info.h"
#include "rpc/control_plane.h"
#include "rpc/grpc/call_queue.h"
#include "rpc/grpc/reply_proto.h"
#include "rpc/grpc/weir.grpc.pb.h"

namespace weir::rpc {

/// What of a call does not depend on its method. Owns itself while it is on its way.
class CallBase : public QueuedCall, public std::enable_shared_from_this<CallBase> {
 public:
  CallBase(CallInfo info, std::shared_ptr<CallQueue> queue);

  /// Replies with `error` soon, never inside: through the queue, or on a thread of gRPC when that
  /// has been closed.
  void FailSoon(absl::Status error);

  void OnFinished() final;

 protected:
  /// Prepares the context. The queue for the call, or nullptr when the plane has been closed.
  grpc::CompletionQueue* Begin(const CallOptions& options);

  /// Replies with what came back, or with the error of the way.
  virtual void ReplyResult() = 0;
  virtual void ReplyError(const absl::Status& error) = 0;

  const CallInfo& info() const { return info_; }
  grpc::ClientContext& context() { return context_; }
  grpc::Status& status() { return status_; }

 private:
  grpc::CompletionQueue* Enter();
  std::shared_ptr<grpc::ClientContext> Context();
  absl::Status WayError() const;

  const CallInfo info_;
  const std::shared_ptr<CallQueue> queue_;
  const TimePoint started_ = std::chrono::steady_clock::now();
  grpc::ClientContext context_;
  grpc::Status status_;
  absl::Status error_;                  // of this side, or of the way
  std::unique_ptr<grpc::Alarm> alarm_;  // of FailSoon
  std::shared_ptr<CallBase> self_;      // from Enter() to OnFinished()
};

/// InvalidArgument for a message beyond gRPC's 2 GB.
absl::Status CheckSize(std::size_t bytes, const CallInfo& info);

/// How the generated code calls asynchronously.
template <typename Request, typename ReplyMessage>
using AsyncMethod = std::unique_ptr<grpc::ClientAsyncResponseReader<ReplyMessage>> (
    v1::Task::Stub::*)(grpc::ClientContext*, const Request&, grpc::CompletionQueue*);

template <typename Request, typename ReplyMessage, typename Result>
class UnaryCall final : public CallBase {
 public:
  UnaryCall(CallInfo info, std::shared_ptr<CallQueue> queue, std::function<void(Result)> reply)
      : CallBase(std::move(info), std::move(queue)), reply_(std::move(reply)) {}

  void Start(AsyncMethod<Request, ReplyMessage> method, const absl::StatusOr<Request>& request,
             const std::shared_ptr<grpc::Channel>& channel, const CallOptions& options) {
    if (!request.ok()) return FailSoon(request.status());
    const absl::Status fits = CheckSize(request->ByteSizeLong(), info());
    if (!fits.ok()) return FailSoon(fits);
    grpc::CompletionQueue* queue = Begin(options);
    if (queue == nullptr) return FailSoon(info().PlaneClosed());
    stub_ = v1::Task::NewStub(channel);
    reader_ = ((*stub_).*method)(&context(), *request, queue);
    reader_->StartCall();
    reader_->Finish(&message_, &status(), static_cast<QueuedCall*>(this));
  }

 private:
  void ReplyResult() override { std::move(reply_)(FromProto(message_)); }
  void ReplyError(const absl::Status& error) override { std::move(reply_)(Result(error)); }

  ReplyMessage message_;
  std::function<void(Result)> reply_;
  std::unique_ptr<v1::Task::Stub> stub_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<ReplyMessage>> reader_;
};

}  // namespace weir::rpc
