#include "base/pool_driver.h"

#include <utility>

namespace weir {

void PoolDriver::Post(std::function<void()> work) {
  MutexLock lock(mutex_);
  queue_.push_back(std::move(work));
  has_work_.store(true, std::memory_order_release);
  if (sleeping_) posted_.NotifyOne();
}

bool PoolDriver::RunUntil(const std::function<bool()>& done, TimePoint deadline) {
  while (true) {
    if (done()) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    if (const auto work = Take()) {
      if (*work) (*work)();
      continue;
    }
    PollForWork();
    SleepForWork(deadline);
  }
}

std::optional<std::function<void()>> PoolDriver::Take() {
  if (!has_work_.load(std::memory_order_acquire)) return std::nullopt;
  MutexLock lock(mutex_);
  std::function<void()> work = std::move(queue_.front());
  queue_.pop_front();
  has_work_.store(!queue_.empty(), std::memory_order_relaxed);
  return work;
}

// May look a little beyond the deadline.
void PoolDriver::PollForWork() {
  poll_.Begin();
  while (!has_work_.load(std::memory_order_acquire) && poll_.Yield()) {
  }
}

void PoolDriver::SleepForWork(TimePoint deadline) {
  MutexLock lock(mutex_);
  sleeping_ = true;
  while (queue_.empty() && posted_.WaitUntil(mutex_, deadline)) {
  }
  sleeping_ = false;
}

}  // namespace weir
