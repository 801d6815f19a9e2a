// The calls in flight of one control plane, and the threads on which their replies run.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace weir::rpc {

/// A call whose answer comes through the queue.
class QueuedCall {
 public:
  virtual ~QueuedCall() = default;
  /// gRPC has finished the call, whatever came of it. Called once, on a thread of the queue.
  virtual void OnFinished() = 0;
};

/// gRPC's own threads for callbacks are not used for calls: a channel must not be destroyed there,
/// and the last owner of a channel may be a call. Thread-safe.
class CallQueue {
 public:
  CallQueue();
  /// REQUIRES: CloseAndWait() was called.
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  /// The queue for a new call, whose tag must be a QueuedCall*; nullptr once closed: the call must
  /// not start.
  grpc::CompletionQueue* Add(std::shared_ptr<grpc::ClientContext> call);
  /// REQUIRES: an Add() that returned a queue. After the reply has run.
  void Remove(const std::shared_ptr<grpc::ClientContext>& call);
  bool IsClosed() const;
  /// Cancels every call, and returns when all have been removed and the threads have ended.
  /// REQUIRES: called once, and not by a reply.
  void CloseAndWait();

 private:
  void RunReplies();
  void CancelAll();

  grpc::CompletionQueue queue_;
  mutable Mutex mutex_;
  CondVar removed_;
  bool closed_ WEIR_GUARDED_BY(mutex_) = false;
  std::set<std::shared_ptr<grpc::ClientContext>> calls_ WEIR_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace weir::rpc
