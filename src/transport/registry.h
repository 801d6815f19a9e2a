// What a transport has to close when it is closed itself.
#pragma once

#include <functional>
#include <map>

#include "base/mutex.h"

namespace weir::transport {

/// Connections, listeners and dials enter a way to close them, and leave when they are over.
/// Thread-safe.
class Registry {
 public:
  /// False once CloseAll() was called: the caller must close what would have entered. `close` may
  /// be called by any thread, also while or just after Remove() is: it holds weak pointers.
  [[nodiscard]] bool Add(const void* key, std::function<void()> close);

  /// Does nothing when `key` is not in.
  void Remove(const void* key);

  /// Calls the way to close of everything that is in, now. Nothing enters any more. Idempotent.
  void CloseAll();

 private:
  Mutex mutex_;
  bool closed_ WEIR_GUARDED_BY(mutex_) = false;
  std::map<const void*, std::function<void()>> entries_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::transport
