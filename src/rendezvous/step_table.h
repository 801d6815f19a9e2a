// The steps a task knows of: running ones, and those whose first tensor came before their RUN.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "rendezvous/step_rendezvous.h"
#include "store/ticket_book.h"

namespace weir {

/// Thread-safe. The steps of one origin begin in the order of their numbers (its RUNs come over one
/// connection), so a number that is not above the highest one begun and is not running belongs to a
/// step that has ended: what arrives for it is late and is dropped.
class StepTable {
 public:
  /// What a step that has not begun, and each value held for it, counts besides the tensor's bytes.
  static constexpr std::size_t kEarlyOverheadBytes = 256;

  /// `early_bytes_max`: how much may be held in all for steps that have not begun.
  explicit StepTable(std::size_t early_bytes_max);
  StepTable(const StepTable&) = delete;
  StepTable& operator=(const StepTable&) = delete;
  ~StepTable();

  /// The step begins; keeps what came early. AlreadyExists for a number that has begun or ended.
  absl::StatusOr<std::shared_ptr<StepRendezvous>> Begin(const store::StepId& id);

  /// ResourceExhausted when `bytes` of a value for a step that has not begun would be refused: to
  /// be asked before they are received.
  absl::Status CheckRoom(const store::StepId& id, std::size_t bytes) const;

  /// A value from a peer. OK and dropped when the step has ended or was aborted; ResourceExhausted
  /// when too much is held for steps that have not begun; AlreadyExists for a duplicate.
  absl::Status Deliver(const store::StepId& id, std::uint32_t edge, Value value);

  /// An abort from a peer: reaches the step when it runs, and is remembered for one that has not
  /// begun (unless too much is held for such steps already).
  void Abort(const store::StepId& id, const absl::Status& reason);

  /// The step has ended: forgets it. Its rendezvous is aborted with Cancelled if it has not been.
  void End(const store::StepId& id);

  /// Aborts and forgets every step, begun or not, of `origin` (its master is gone). What comes
  /// later for its steps is dropped, until a new one begins (the master was only out of reach); a
  /// step of which something was dropped or forgotten begins aborted with `reason`.
  void AbortOrigin(std::uint64_t origin, const absl::Status& reason);
  /// Aborts every step there is; later ones are aborted as they begin.
  void AbortAll(const absl::Status& reason);

  std::size_t running() const;
  std::size_t early() const;

 private:
  struct Origin;
  struct EarlyStep;

  Origin& OriginOf(std::uint64_t id) WEIR_REQUIRES(mutex_);
  /// Peers may name any origin: one that nothing is known of is not kept.
  void ForgetIfUnknown(std::uint64_t id) WEIR_REQUIRES(mutex_);
  /// The entry of a step that has not begun, made when there is none; nullptr when that would hold
  /// more than is allowed together with `bytes` more.
  EarlyStep* Early(Origin& origin, std::uint64_t step, std::size_t bytes) WEIR_REQUIRES(mutex_);
  void ForgetEarlyBelow(Origin& origin, std::uint64_t step) WEIR_REQUIRES(mutex_);
  absl::Status TooMuch(const store::StepId& id, std::size_t bytes) const WEIR_REQUIRES(mutex_);
  absl::Status DeliverEarly(const store::StepId& id, Origin& origin, std::uint32_t edge,
                            Value value) WEIR_REQUIRES(mutex_);

  mutable Mutex mutex_;
  const std::size_t early_bytes_max_;
  std::size_t early_bytes_ WEIR_GUARDED_BY(mutex_) = 0;
  absl::Status closed_ WEIR_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<Origin>> origins_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir
