#include "transport/tcp/loop.h"

#include "base/yield_poll.h"

namespace weir::transport::tcp {

Loop::Loop(Duration poll_before_sleep)
    : context_(/*concurrency_hint=*/1),
      poll_before_sleep_(poll_before_sleep),
      work_(asio::make_work_guard(context_)) {}

void Loop::End() {
  MutexLock lock(mutex_);
  if (ending_) return;
  ending_ = true;
  asio::post(context_, [this] { work_.reset(); });
}

void Loop::Run() {
  YieldPoll poll(poll_before_sleep_);
  poll.Begin();
  while (!context_.stopped()) {
    const bool has_worked = context_.poll() > 0;
    if (!has_worked && poll.Yield()) continue;
    if (!has_worked) context_.run_one();
    poll.Begin();
  }
}

}  // namespace weir::transport::tcp
