#include "rpc/inproc/call.h"

#include <string>

#include "rpc/inproc/endpoint.h"

namespace weir::rpc {
namespace {

constexpr Duration kPollInterval = std::chrono::milliseconds(10);

}  // namespace

Call::Call(CallContext context)
    : context_(std::move(context)), started_(context_.scheduler->Now()) {}

void Call::Start() {
  if (context_.options.deadline != TimePoint::max()) {
    std::shared_ptr<Timer> deadline =
        context_.scheduler->PostAt(context_.options.deadline, [self = shared_from_this()] {
          self->Fail(self->info().TimedOut(self->context_.scheduler->Now() - self->started_));
        });
    MutexLock lock(mutex_);
    deadline_ = std::move(deadline);
  }
  PostHere([self = shared_from_this()] { self->Poll(); });
}

void Call::Poll() {
  Try();
  if (!IsWaiting()) return;
  context_.scheduler->PostAt(context_.scheduler->Now() + kPollInterval,
                             [self = shared_from_this()] { self->Poll(); });
}

void Call::Try() {
  if (!IsWaiting()) return;
  const std::shared_ptr<Endpoint> endpoint = context_.registry->Find(context_.address);
  if (endpoint != nullptr) {
    if (Leave()) endpoint->Accept(shared_from_this(), context_.registry->delay());
  } else if (!context_.options.wait_for_ready && Leave()) {
    Fail(info().Unreachable("nobody listens there"));
  }
}

bool Call::IsWaiting() const {
  MutexLock lock(mutex_);
  return !left_ && !settled_;
}

bool Call::Leave() {
  MutexLock lock(mutex_);
  return !std::exchange(left_, true);
}

bool Call::IsSettled() const {
  MutexLock lock(mutex_);
  return settled_;
}

bool Call::Settle() {
  MutexLock lock(mutex_);
  if (std::exchange(settled_, true)) return false;
  if (deadline_ != nullptr) deadline_->Cancel();
  deadline_ = nullptr;
  return true;
}

bool Call::TakeReply() {
  MutexLock lock(mutex_);
  return !std::exchange(replied_, true);
}

void Call::Return(std::function<void()> deliver) {
  if (!context_.registry->IsReachable(context_.address)) {
    return Fail(info().Unreachable("the connection was lost"));
  }
  const Duration delay = context_.registry->delay();
  if (delay == Duration::zero()) return PostHere(std::move(deliver));
  context_.scheduler->PostAt(context_.scheduler->Now() + delay, std::move(deliver));
}

void Call::PostHere(std::function<void()> deliver) {
  context_.scheduler->Post(std::move(deliver));
}

}  // namespace weir::rpc
