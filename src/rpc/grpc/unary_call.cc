#include "rpc/grpc/unary_call.h"

#include <grpc/support/time.h>

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "rpc/grpc/deadline.h"

namespace weir::rpc {

CallBase::CallBase(CallInfo info, std::shared_ptr<CallQueue> queue)
    : info_(std::move(info)), queue_(std::move(queue)) {}

void CallBase::FailSoon(absl::Status error) {
  error_ = std::move(error);
  alarm_ = std::make_unique<grpc::Alarm>();
  const gpr_timespec now = gpr_now(GPR_CLOCK_MONOTONIC);
  if (grpc::CompletionQueue* queue = Enter(); queue != nullptr) {
    alarm_->Set(queue, now, static_cast<QueuedCall*>(this));
  } else {
    alarm_->Set(now, [self = shared_from_this()](bool) {
      self->ReplyError(self->error_);
      self->alarm_ = nullptr;  // which holds this function, and with it the call
    });
  }
}

grpc::CompletionQueue* CallBase::Begin(const CallOptions& options) {
  context_.set_deadline(ToGrpcTime(options.deadline));
  context_.set_wait_for_ready(options.wait_for_ready);
  return Enter();
}

grpc::CompletionQueue* CallBase::Enter() {
  grpc::CompletionQueue* queue = queue_->Add(Context());
  if (queue != nullptr) self_ = shared_from_this();
  return queue;
}

void CallBase::OnFinished() {
  const std::shared_ptr<CallBase> self = std::move(self_);
  if (error_.ok() && !status_.ok()) error_ = WayError();
  if (error_.ok()) {
    ReplyResult();
  } else {
    ReplyError(error_);
  }
  queue_->Remove(Context());
}

std::shared_ptr<grpc::ClientContext> CallBase::Context() {
  return {shared_from_this(), &context_};
}

/// A status that is about the way, in the words of CallInfo where they apply.
absl::Status CallBase::WayError() const {
  if (queue_->IsClosed()) return info_.PlaneClosed();
  switch (status_.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return info_.TimedOut(std::chrono::steady_clock::now() - started_);
    // A server that closes cancels its calls; this side cancels only with the whole plane.
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNAVAILABLE:
      return info_.Unreachable(status_.error_message());
    default:
      return {static_cast<absl::StatusCode>(status_.error_code()),
              absl::StrCat(info_.ToString(), ": ", status_.error_message())};
  }
}

absl::Status CheckSize(std::size_t bytes, const CallInfo& info) {
  if (bytes <= static_cast<std::size_t>(std::numeric_limits<int>::max())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(info.ToString(), ": a request of ", bytes,
                   " bytes, where the control plane carries up to 2 GB; large values are better "
                   "fed than put into the graph"));
}

}  // namespace weir::rpc
