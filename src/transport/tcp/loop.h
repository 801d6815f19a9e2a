// A thread that owns connections.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <utility>

#include "base/mutex.h"
#include "base/scheduler.h"

namespace weir::transport::tcp {

/// An io_context and how it is run. Shared by everything that lives on it; whoever runs it holds a
/// reference as well, so that it never ends inside itself.
class Loop {
 public:
  explicit Loop(Duration poll_before_sleep);

  asio::io_context& context() { return context_; }

  /// Runs `function` on the loop, never inside this call. False, and `function` is dropped, once
  /// the loop ends; what runs on the loop itself can always post. Thread-safe.
  template <typename Function>
  bool Post(Function&& function) WEIR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (ending_ && !context_.get_executor().running_in_this_thread()) return false;
    asio::post(context_, std::forward<Function>(function));
    return true;
  }

  /// Takes nothing more from outside; Run() returns when all that was begun is over.
  void End();

  /// The body of the loop's thread.
  void Run();

 private:
  asio::io_context context_;
  const Duration poll_before_sleep_;
  Mutex mutex_;
  bool ending_ WEIR_GUARDED_BY(mutex_) = false;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
};

}  // namespace weir::transport::tcp
