// One variable: its buffer, its version, and the rules under which both are touched.
//
// Reads and updates take no lock by default: an update is plain vector stores into the buffer while
// others read it (Hogwild), the original's default. `use_locking` makes updates of this variable
// exclude each other; `consistent_reads` makes a read a copy of one whole version. The version is
// atomic always.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "store/staleness.h"
#include "store/ticket_book.h"
#include "weir/initializer.h"

namespace weir::store {

/// What a variable is, as asked for by a graph. Two askers must agree on dtype and shape.
struct VariableDef {
  std::string name;
  std::string container;
  Initializer initializer;  // its shape and dtype are the variable's
  std::uint64_t seed = 0;   // of the graph; the draw also depends on the name
  bool trainable = true;
  bool use_locking = false;
  bool consistent_reads = false;
  bool read_in_place = false;
};

/// A tensor and the version it was read at. The version is loaded before the first byte is read:
/// the true number of updates in the bytes is at least that.
struct Snapshot {
  at::Tensor tensor;
  std::uint64_t version = 0;
};

/// Thread-safe. Kept by shared_ptr: a running step may hold a variable that Reset has taken out of
/// the store.
class Variable {
 public:
  explicit Variable(VariableDef def);

  const VariableDef& def() const { return def_; }
  bool initialized() const { return initialized_.load(std::memory_order_acquire); }
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  std::uint64_t bytes() const;

  /// Runs the initialiser unless somebody has already; every caller returns after it has been run,
  /// once. InvalidArgument when it cannot be run (a Value of another shape).
  absl::Status Initialize();

  /// The buffer itself (no copy), or with consistent_reads a copy of one version.
  /// FailedPrecondition "Attempting to use uninitialized value X" before initialisation.
  absl::StatusOr<Snapshot> Read() const;
  /// Always a copy; of one whole version with consistent_reads, else as unlocked as Read.
  absl::StatusOr<Snapshot> ReadCopy() const;

  /// Runs `update(buffer)` under the rule of this variable: with its update lock when the variable
  /// or `use_locking` asks for it (and then excluding consistent readers), else with none. Counts
  /// one version afterwards. Returns the version before this update was counted.
  template <typename Function>
  absl::StatusOr<std::uint64_t> Update(bool use_locking, Function&& update);

  /// The whole buffer is overwritten by `value` (same shape and dtype, else InvalidArgument); marks
  /// the variable initialised. Under the update lock always, as the original's Assign. Counts a
  /// version.
  absl::Status Assign(const at::Tensor& value);

  /// A named slot of this variable ("Adam/m"), made by `initial` on first use, whoever comes first.
  absl::StatusOr<at::Tensor> Slot(const std::string& name, const Initializer& initial);
  std::map<std::string, at::Tensor> slots() const;

  StalenessHistogram& staleness() { return staleness_; }
  const StalenessHistogram& staleness() const { return staleness_; }
  /// Step tickets; meaningful for the variable that counts global steps.
  TicketBook& tickets() { return tickets_; }

  /// How often an update or a read had to take a lock: 0 for a variable of default options.
  std::uint64_t lock_acquisitions() const {
    return lock_acquisitions_.load(std::memory_order_relaxed);
  }

 private:
  absl::Status CheckInitialized() const;

  const VariableDef def_;
  at::Tensor buffer_;  // allocated once, never replaced: views of it may be on the wire
  std::atomic<bool> initialized_{false};
  std::atomic<std::uint64_t> version_{0};
  mutable std::atomic<std::uint64_t> lock_acquisitions_{0};
  mutable Mutex update_mutex_;
  Mutex init_mutex_;
  mutable Mutex slots_mutex_;
  std::map<std::string, at::Tensor> slots_ WEIR_GUARDED_BY(slots_mutex_);
  StalenessHistogram staleness_;
  TicketBook tickets_;
};

}  // namespace weir::store
