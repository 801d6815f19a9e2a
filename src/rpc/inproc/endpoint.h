// A service that listens: the part of an in-process server that calls know.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "base/mutex.h"
#include "base/scheduler.h"
#include "rpc/checked_service.h"
#include "rpc/control_plane.h"
#include "rpc/inproc/call.h"

namespace weir::rpc {

/// Runs calls on the scheduler of its server. Thread-safe.
class Endpoint : public std::enable_shared_from_this<Endpoint> {
 public:
  /// Neither is owned. The service is used until WaitUntilIdle() has returned.
  Endpoint(Scheduler* scheduler, TaskService* service);

  /// Runs `call` after `delay`, the time of the way here. Once closed, it fails.
  void Accept(std::shared_ptr<Call> call, Duration delay);

  /// Begins no more calls, waits up to `grace` for those that run, and fails those that still do.
  void Close(Duration grace);

  /// Blocks until no method of the service runs. On a simulated scheduler none may be further down
  /// this very stack. REQUIRES: Close() was called.
  void WaitUntilIdle();

 private:
  void Run(const std::shared_ptr<Call>& call);
  bool Begin(const std::shared_ptr<Call>& call);
  void End(const std::shared_ptr<Call>& call);
  void WaitUntilIdle(TimePoint deadline);

  Scheduler* const scheduler_;
  CheckedService service_;
  Mutex mutex_;
  bool closed_ WEIR_GUARDED_BY(mutex_) = false;
  std::set<std::shared_ptr<Call>> running_ WEIR_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Driver>> waiters_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::rpc
