// Where the values of one step meet those who wait for them, keyed by the plan's edge numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "rendezvous/value.h"

namespace weir {

/// Thread-safe. Put and Recv of an edge may come in either order, each at most once. Callbacks run
/// outside the lock, on the thread of whoever completed the pair (or aborted), exactly once: also
/// when the rendezvous is destroyed (Cancelled).
class StepRendezvous {
 public:
  using Callback = std::function<void(absl::StatusOr<Value>)>;

  StepRendezvous();
  StepRendezvous(const StepRendezvous&) = delete;
  StepRendezvous& operator=(const StepRendezvous&) = delete;
  ~StepRendezvous();

  /// AlreadyExists for an edge that has been put before; the first error after an abort.
  absl::Status Put(std::uint32_t edge, Value value);
  /// Calls `done` with the value, at once when it is there. A second Recv of an edge gets
  /// AlreadyExists.
  void RecvAsync(std::uint32_t edge, Callback done);
  /// Wakes every waiter, now and later, with `reason` (not OK). The first reason counts. Held
  /// values are dropped.
  void Abort(const absl::Status& reason);
  absl::Status status() const;
  /// Calls `done` when the rendezvous is aborted, at once if it has been; never otherwise. For
  /// those who wait for something else than a value and have to hear of the end of the step.
  void NotifyAbort(std::function<void()> done);

  /// Values that were put and not received yet.
  std::size_t held() const;

 private:
  struct Item;
  mutable Mutex mutex_;
  absl::Status status_ WEIR_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> abort_listeners_ WEIR_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::uint32_t, std::unique_ptr<Item>> items_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir
