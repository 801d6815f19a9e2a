#include "base/strand.h"

#include <deque>
#include <utility>

#include "base/mutex.h"

namespace weir {

class Strand::Queue : public std::enable_shared_from_this<Queue> {
 public:
  explicit Queue(Scheduler* scheduler) : scheduler_(scheduler) {}

  void Post(std::function<void()> work) {
    {
      MutexLock lock(mutex_);
      waiting_.push_back(std::move(work));
      if (std::exchange(scheduled_, true)) return;
    }
    Schedule();
  }

 private:
  void Schedule() {
    scheduler_->Post([self = shared_from_this()] { self->RunFirst(); });
  }

  void RunFirst() {
    std::function<void()> work;
    {
      MutexLock lock(mutex_);
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    work();
    work = nullptr;
    {
      MutexLock lock(mutex_);
      scheduled_ = !waiting_.empty();
      if (!scheduled_) return;
    }
    Schedule();
  }

  Scheduler* const scheduler_;
  Mutex mutex_;
  bool scheduled_ WEIR_GUARDED_BY(mutex_) = false;  // RunFirst is posted or running
  std::deque<std::function<void()>> waiting_ WEIR_GUARDED_BY(mutex_);
};

Strand::Strand(Scheduler* scheduler) : queue_(std::make_shared<Queue>(scheduler)) {}

void Strand::Post(std::function<void()> work) {
  // The work may destroy this strand on another thread before Post returns.
  const std::shared_ptr<Queue> queue = queue_;
  queue->Post(std::move(work));
}

}  // namespace weir
