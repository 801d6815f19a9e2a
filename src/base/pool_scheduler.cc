#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/pool_driver.h"
#include "base/scheduler.h"
#include "base/status.h"
#include "base/timer_queue.h"

namespace weir {
namespace {

/// Lock order: timer_mutex_ before the timer queue's own lock.
class PoolScheduler final : public Scheduler {
 public:
  explicit PoolScheduler(int threads) {
    WEIR_CHECK(threads >= 1);
    threads_.reserve(static_cast<std::size_t>(threads) + 1);
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { RunWork(); });
    threads_.emplace_back([this] { RunTimers(); });
  }

  ~PoolScheduler() override {
    Close();
    Join();
  }

  void Post(std::function<void()> work) override {
    MutexLock lock(mutex_);
    if (closed_) return;
    queue_.push_back(std::move(work));
    if (idle_threads_ > 0) work_posted_.NotifyOne();
  }

  std::shared_ptr<Timer> PostAt(TimePoint when, std::function<void()> work) override {
    std::shared_ptr<Timer> timer = timers_->Add(when, std::move(work));
    MutexLock lock(timer_mutex_);
    if (timers_closed_) {
      timer->Cancel();
    } else if (when < timer_wakes_at_) {
      timer_wakes_at_ = when;
      timer_added_.NotifyOne();
    }
    return timer;
  }

  TimePoint Now() const override { return std::chrono::steady_clock::now(); }

  std::unique_ptr<Driver> NewDriver() override { return std::make_unique<PoolDriver>(); }

  void Close() override {
    {
      MutexLock lock(timer_mutex_);
      timers_closed_ = true;
      timer_added_.NotifyOne();
    }
    timers_->Clear();
    MutexLock lock(mutex_);
    closed_ = true;
    work_posted_.NotifyAll();
  }

  void Join() override {
    MutexLock lock(join_mutex_);
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  /// A thread of the pool. Work posted before Close() is still run.
  void RunWork() {
    while (const std::optional<std::function<void()>> work = Next()) (*work)();
  }

  std::optional<std::function<void()>> Next() {
    MutexLock lock(mutex_);
    ++idle_threads_;
    while (queue_.empty() && !closed_) work_posted_.Wait(mutex_);
    --idle_threads_;
    if (queue_.empty()) return std::nullopt;
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    return work;
  }

  void RunTimers() {
    while (SleepUntilDue()) {
      for (std::function<void()>& work : timers_->TakeDue(Now())) Post(std::move(work));
    }
  }

  /// False after Close(). The thread wakes for a time earlier than the one it sleeps for, not for
  /// each timer: most are deadlines, which are cancelled long before they are due.
  bool SleepUntilDue() {
    MutexLock lock(timer_mutex_);
    while (!timers_closed_) {
      timer_wakes_at_ = timers_->NextDue().value_or(TimePoint::max());
      if (timer_wakes_at_ <= Now()) return true;
      timer_added_.WaitUntil(timer_mutex_, timer_wakes_at_);
    }
    return false;
  }

  Mutex mutex_;
  CondVar work_posted_;
  std::deque<std::function<void()>> queue_ WEIR_GUARDED_BY(mutex_);
  int idle_threads_ WEIR_GUARDED_BY(mutex_) = 0;
  bool closed_ WEIR_GUARDED_BY(mutex_) = false;

  const std::shared_ptr<TimerQueue> timers_ = std::make_shared<TimerQueue>();
  Mutex timer_mutex_;
  CondVar timer_added_;
  TimePoint timer_wakes_at_ WEIR_GUARDED_BY(timer_mutex_) = TimePoint::max();
  bool timers_closed_ WEIR_GUARDED_BY(timer_mutex_) = false;

  Mutex join_mutex_;
  std::vector<std::thread> threads_;  // written by the constructor and under join_mutex_
};

}  // namespace

std::unique_ptr<Scheduler> NewPoolScheduler(int threads) {
  return std::make_unique<PoolScheduler>(threads);
}

}  // namespace weir
