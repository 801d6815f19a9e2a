// The steps a task knows of: running ones, and those whose first tensor came before their RUN.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/scheduler.h"
#include "rendezvous/step_rendezvous.h"
#include "store/ticket_book.h"

namespace weir {

/// Thread-safe. The steps of one origin begin in the order of their numbers (its RUNs come over one
/// connection), so a number that is not above the highest one begun and is not running belongs to a
/// step that has ended: what arrives for it is late and is dropped.
class StepTable {
 public:
  /// `early_bytes_max`: how much may be held in all for steps that have not begun.
  explicit StepTable(std::size_t early_bytes_max) : early_bytes_max_(early_bytes_max) {}

  /// The step begins; keeps what came early. AlreadyExists for a number that has begun or ended.
  absl::StatusOr<std::shared_ptr<StepRendezvous>> Begin(const store::StepId& id);

  /// A value from a peer. OK and dropped when the step has ended; ResourceExhausted when too much
  /// is held for steps that have not begun; AlreadyExists for a duplicate.
  absl::Status Deliver(const store::StepId& id, std::uint32_t edge, Value value);

  /// An abort from a peer: reaches the step when it runs, and is remembered for one that has not
  /// begun.
  void Abort(const store::StepId& id, const absl::Status& reason);

  /// The step has ended: forgets it. Its rendezvous is aborted with Cancelled if it has not been.
  void End(const store::StepId& id);

  /// Aborts and forgets every step, begun or not, of `origin` (its master is gone).
  void AbortOrigin(std::uint64_t origin, const absl::Status& reason);
  /// Aborts every step there is; later ones are aborted as they begin.
  void AbortAll(const absl::Status& reason);

  std::size_t running() const;
  std::size_t early() const;

 private:
  struct Origin;
  mutable Mutex mutex_;
  const std::size_t early_bytes_max_;
  std::size_t early_bytes_ WEIR_GUARDED_BY(mutex_) = 0;
  absl::Status closed_ WEIR_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<Origin>> origins_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir
