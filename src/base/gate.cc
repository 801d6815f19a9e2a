#include "base/gate.h"

#include <memory>
#include <utility>

#include "base/status.h"

namespace weir {

bool Gate::Enter() {
  MutexLock lock(mutex_);
  if (closed_) return false;
  ++inside_;
  return true;
}

bool Gate::EnterUntilEmpty() {
  MutexLock lock(mutex_);
  if (closed_ && inside_ == 0) return false;
  ++inside_;
  return true;
}

void Gate::Leave() {
  std::vector<std::function<void()>> callbacks;
  {
    MutexLock lock(mutex_);
    WEIR_CHECK(inside_ > 0);
    if (--inside_ == 0) callbacks.swap(when_empty_);
  }
  // `this` may be gone once the first of these has run.
  for (const std::function<void()>& callback : callbacks) callback();
}

void Gate::Close(std::function<void()> when_empty) {
  {
    MutexLock lock(mutex_);
    closed_ = true;
    if (!when_empty) return;
    if (inside_ > 0) {
      when_empty_.push_back(std::move(when_empty));
      return;
    }
  }
  when_empty();
}

void Gate::CloseAndWait() {
  // Outlives both threads: the one that leaves last may still be in NotifyOne when this one goes.
  struct Wait {
    Mutex mutex;
    CondVar changed;
    bool empty WEIR_GUARDED_BY(mutex) = false;
  };
  auto wait = std::make_shared<Wait>();
  Close([wait] {
    MutexLock lock(wait->mutex);
    wait->empty = true;
    wait->changed.NotifyOne();
  });
  MutexLock lock(wait->mutex);
  while (!wait->empty) wait->changed.Wait(wait->mutex);
}

bool Gate::IsClosed() const {
  MutexLock lock(mutex_);
  return closed_;
}

}  // namespace weir
