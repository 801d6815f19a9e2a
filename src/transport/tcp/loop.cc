#include "transport/tcp/loop.h"

#include <sched.h>

#include <chrono>

namespace weir::transport::tcp {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

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
  TimePoint last_work = Clock::now();
  while (!context_.stopped()) {
    if (context_.poll() > 0) {
      last_work = Clock::now();
    } else if (Clock::now() - last_work < poll_before_sleep_) {
      ::sched_yield();
    } else {
      context_.run_one();
      last_work = Clock::now();
    }
  }
}

}  // namespace weir::transport::tcp
