// Calls that may still be in flight.
#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "rpc/inproc/call.h"

namespace weir::rpc {

/// Does not keep calls alive. Thread-safe.
class CallList {
 public:
  /// False once the list has been closed.
  bool Add(const std::shared_ptr<Call>& call);
  std::vector<std::shared_ptr<Call>> Alive() const;
  /// Takes no more calls and fails those that are alive with Cancelled.
  void Close();

 private:
  mutable Mutex mutex_;
  bool closed_ WEIR_GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<Call>> calls_ WEIR_GUARDED_BY(mutex_);
  std::size_t prune_at_ WEIR_GUARDED_BY(mutex_) = 16;
};

}  // namespace weir::rpc
