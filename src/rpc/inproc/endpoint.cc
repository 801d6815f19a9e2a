#include "rpc/inproc/endpoint.h"

#include <utility>

namespace weir::rpc {

Endpoint::Endpoint(Scheduler* scheduler, TaskService* service)
    : scheduler_(scheduler), service_(service) {}

void Endpoint::Accept(std::shared_ptr<Call> call, Duration delay) {
  auto run = [self = shared_from_this(), call = std::move(call)] { self->Run(call); };
  if (delay == Duration::zero()) {
    scheduler_->Post(std::move(run));
  } else {
    scheduler_->PostAt(scheduler_->Now() + delay, std::move(run));
  }
}

void Endpoint::Run(const std::shared_ptr<Call>& call) {
  if (!Begin(call)) return call->Fail(call->info().Unreachable("the task is closing"));
  call->Run(service_);
  End(call);
}

bool Endpoint::Begin(const std::shared_ptr<Call>& call) {
  MutexLock lock(mutex_);
  if (closed_) return false;
  running_.insert(call);
  return true;
}

void Endpoint::End(const std::shared_ptr<Call>& call) {
  MutexLock lock(mutex_);
  running_.erase(call);
  for (const std::shared_ptr<Driver>& waiter : waiters_) waiter->Post([] {});
}

void Endpoint::Close(Duration grace) {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  WaitUntilIdle(scheduler_->Now() + grace);
  std::set<std::shared_ptr<Call>> outlived;
  {
    MutexLock lock(mutex_);
    outlived = running_;
  }
  for (const std::shared_ptr<Call>& call : outlived) {
    call->Fail(call->info().Unreachable("the task has closed"));
  }
}

void Endpoint::WaitUntilIdle() {
  WaitUntilIdle(TimePoint::max());
}

void Endpoint::WaitUntilIdle(TimePoint deadline) {
  const std::shared_ptr<Driver> driver = scheduler_->NewDriver();
  {
    MutexLock lock(mutex_);
    waiters_.push_back(driver);
  }
  driver->RunUntil(
      [this] {
        MutexLock lock(mutex_);
        return running_.empty();
      },
      deadline);
  MutexLock lock(mutex_);
  std::erase(waiters_, driver);
}

}  // namespace weir::rpc
