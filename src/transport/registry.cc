#include "transport/registry.h"

#include <utility>

namespace weir::transport {

bool Registry::Add(const void* key, std::function<void()> close) {
  MutexLock lock(mutex_);
  if (closed_) return false;
  entries_[key] = std::move(close);
  return true;
}

void Registry::Remove(const void* key) {
  decltype(entries_)::node_type removed;  // destroyed outside the lock
  MutexLock lock(mutex_);
  removed = entries_.extract(key);
}

void Registry::CloseAll() {
  std::map<const void*, std::function<void()>> entries;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    entries.swap(entries_);
  }
  for (const auto& [key, close] : entries) close();
}

}  // namespace weir::transport
