#include "base/timer_queue.h"

namespace weir {

class TimerQueue::Entry : public Timer {
 public:
  Entry(std::weak_ptr<TimerQueue> queue, Key key, std::function<void()> work)
      : queue_(std::move(queue)), key_(key), work_(std::move(work)) {}

  void Cancel() override {
    const std::function<void()> dropped = Take();
    if (std::shared_ptr<TimerQueue> queue = queue_.lock()) queue->Erase(key_);
  }

  void Run() {
    if (const std::function<void()> work = Take()) work();
  }

  /// The work goes to whoever asks first, to be run or to be destroyed outside the lock.
  std::function<void()> Take() WEIR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return std::exchange(work_, nullptr);
  }

 private:
  const std::weak_ptr<TimerQueue> queue_;
  const Key key_;
  Mutex mutex_;
  std::function<void()> work_ WEIR_GUARDED_BY(mutex_);
};

std::shared_ptr<Timer> TimerQueue::Add(TimePoint when, std::function<void()> work) {
  MutexLock lock(mutex_);
  const Key key(when, next_number_++);
  auto entry = std::make_shared<Entry>(weak_from_this(), key, std::move(work));
  entries_.emplace(key, entry);
  return entry;
}

std::vector<std::function<void()>> TimerQueue::TakeDue(TimePoint now) {
  std::vector<std::function<void()>> due;
  MutexLock lock(mutex_);
  while (!entries_.empty() && entries_.begin()->first.first <= now) {
    auto first = entries_.extract(entries_.begin());
    due.push_back([entry = std::move(first.mapped())] { entry->Run(); });
  }
  return due;
}

std::optional<TimePoint> TimerQueue::NextDue() const {
  MutexLock lock(mutex_);
  if (entries_.empty()) return std::nullopt;
  return entries_.begin()->first.first;
}

void TimerQueue::Clear() {
  std::map<Key, std::shared_ptr<Entry>> dropped;
  {
    MutexLock lock(mutex_);
    dropped.swap(entries_);
  }
  // A handle kept somewhere must not keep the work alive.
  for (const auto& [key, entry] : dropped) entry->Take();
}

void TimerQueue::Erase(const Key& key) {
  std::shared_ptr<Entry> erased;
  MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  erased = std::move(found->second);
  entries_.erase(found);
}

}  // namespace weir
