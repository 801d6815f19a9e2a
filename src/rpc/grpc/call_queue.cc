#include "rpc/grpc/call_queue.h"

#include <utility>

namespace weir::rpc {
namespace {

// A reply that takes its time does not hold up all others.
constexpr int kThreads = 2;

}  // namespace

CallQueue::CallQueue() {
  for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { RunReplies(); });
}

CallQueue::~CallQueue() = default;

void CallQueue::RunReplies() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) static_cast<QueuedCall*>(tag)->OnFinished();
}

grpc::CompletionQueue* CallQueue::Add(std::shared_ptr<grpc::ClientContext> call) {
  MutexLock lock(mutex_);
  if (closed_) return nullptr;
  calls_.insert(std::move(call));
  return &queue_;
}

void CallQueue::Remove(const std::shared_ptr<grpc::ClientContext>& call) {
  MutexLock lock(mutex_);
  calls_.erase(call);
  if (closed_ && calls_.empty()) removed_.NotifyAll();
}

bool CallQueue::IsClosed() const {
  MutexLock lock(mutex_);
  return closed_;
}

void CallQueue::CancelAll() {
  std::set<std::shared_ptr<grpc::ClientContext>> calls;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    calls = calls_;
  }
  for (const auto& call : calls) call->TryCancel();
}

void CallQueue::CloseAndWait() {
  CancelAll();
  {
    MutexLock lock(mutex_);
    while (!calls_.empty()) removed_.Wait(mutex_);
  }
  queue_.Shutdown();
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace weir::rpc
