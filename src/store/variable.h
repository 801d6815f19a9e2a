// One variable: its buffer, its version, and the rules under which both are touched.
//
// Reads and updates take no lock by default: an update is plain vector stores into the buffer while
// others read it (Hogwild), the original's default. `use_locking` makes updates of this variable
// exclude each other; `consistent_reads` makes a read a copy of one whole version. The version is
// atomic always, and so is a counter: an integer scalar such as global_step.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/status.h"
#include "store/blocks.h"
#include "store/staleness.h"
#include "store/ticket_book.h"
#include "weir/initializer.h"

namespace weir::store {

/// What a variable is, as asked for by a graph. Two askers must agree on dtype, shape and part.
struct VariableDef {
  std::string name;
  std::string container;
  Initializer initializer;  // its shape and dtype are the variable's
  std::uint64_t seed = 0;   // of the graph; the draw also depends on the name
  std::string drawn_as;     // ... or on this one, where the first value is another variable's
  std::string part;         // which part of which whole it is, in words; "" of a whole variable
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

  /// The tensor of a Value initialiser is not in it: it is kept aside until it has been copied.
  const VariableDef& def() const { return def_; }
  bool initialized() const { return initialized_.load(std::memory_order_acquire); }
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// Of the value alone, without slots.
  std::uint64_t bytes() const { return bytes_; }

  /// Runs the initialiser unless somebody has already; every caller returns after it has been run,
  /// once. InvalidArgument when it cannot be run (a Value of another shape), ResourceExhausted when
  /// there is no memory. The tickets of a counter go on from its first value.
  absl::Status Initialize();

  /// The buffer itself (no copy), or with consistent_reads a copy of one version; of a counter
  /// always a copy. Do not write to it, nor ask a gradient of it without detach().
  /// FailedPrecondition "Attempting to use uninitialized value X" before initialisation.
  absl::StatusOr<Snapshot> Read() const;
  /// Always a copy; of one whole version with consistent_reads, else as unlocked as Read.
  absl::StatusOr<Snapshot> ReadCopy() const;
  /// ReadCopy into memory that the caller has: `to` is contiguous, of the variable's shape and
  /// dtype (else InvalidArgument). Returns the version.
  absl::StatusOr<std::uint64_t> ReadInto(const at::Tensor& to) const;

  /// A copy of the rows `ids` (int64 or int32, any order, also several times), with the rest of the
  /// variable's shape; of one whole version with consistent_reads. InvalidArgument for an id that
  /// is no row, naming it, the variable and its number of rows.
  absl::StatusOr<Snapshot> ReadRows(const at::Tensor& ids) const;

  /// Runs `update(buffer)` under the rule of this variable: with its update lock when the variable
  /// or `use_locking` asks for it (or when it has consistent readers, to exclude them), else with
  /// none. Counts one version afterwards. Returns the version before this update was counted.
  template <typename Function>
  absl::StatusOr<std::uint64_t> Update(bool use_locking, Function&& update);

  /// The whole buffer is overwritten by `value` (same shape and dtype, else InvalidArgument); marks
  /// the variable initialised. Under the update lock always, as the original's Assign. Counts a
  /// version. The tickets of a counter go on from `value`.
  absl::Status Assign(const at::Tensor& value);

  /// Adds `value` (same shape and dtype, a numeric one; else InvalidArgument) as an update. Atomic
  /// without a lock for a counter: no increment is lost. Returns the version before it was counted.
  absl::StatusOr<std::uint64_t> AssignAdd(const at::Tensor& value, bool use_locking);

  /// Adds values[k] to row ids[k], for each k: an update. InvalidArgument as ReadRows, for values
  /// of another shape or dtype, and for a variable of bools. The values may be rows of this
  /// variable. Returns the version before it was counted.
  absl::StatusOr<std::uint64_t> ScatterAdd(const at::Tensor& ids, const at::Tensor& values,
                                           bool use_locking);
  /// Overwrites row ids[k] by values[k]; of several values for one row the last one stays.
  absl::StatusOr<std::uint64_t> ScatterUpdate(const at::Tensor& ids, const at::Tensor& values,
                                              bool use_locking);

  /// A named slot of this variable ("Adam/m"), made by `initial` on first use, whoever comes first.
  /// InvalidArgument when it exists with another shape or dtype.
  absl::StatusOr<at::Tensor> Slot(const std::string& name, const Initializer& initial);
  std::map<std::string, at::Tensor> slots() const;

  StalenessHistogram& staleness() { return staleness_; }
  const StalenessHistogram& staleness() const { return staleness_; }
  /// Step tickets; meaningful for the variable that counts global steps.
  TicketBook& tickets() { return tickets_; }

  /// How often an update, a read or an Assign had to take a lock: without Assign 0 for a variable
  /// of default options.
  std::uint64_t lock_acquisitions() const {
    return lock_acquisitions_.load(std::memory_order_relaxed);
  }

  /// For tests; see BlockHook. REQUIRES: nobody reads or updates the variable meanwhile.
  void SetBlockHook(BlockHook hook) { block_hook_ = std::move(hook); }
  /// Called by update kernels between their blocks; empty in production.
  const BlockHook& block_hook() const { return block_hook_; }

 private:
  absl::Status CheckInitialized() const;
  /// InvalidArgument unless `value` is a dense tensor of this variable's shape and dtype in memory.
  absl::Status CheckLike(const at::Tensor& value, const char* what) const;
  /// InvalidArgument for a variable of bools.
  absl::Status CheckCanAdd() const;
  /// Makes `value` the buffer. REQUIRES: not yet initialised.
  void Adopt(at::Tensor value) WEIR_REQUIRES(init_mutex_);
  /// Adopts a copy of `plain` and counts a version, unless the variable is initialised already.
  absl::StatusOr<bool> AdoptIfFirst(const at::Tensor& plain);
  std::uint64_t CopyOut(const at::Tensor& to) const;
  /// Calls `read`, which returns a version, under the lock of consistent_reads if they are asked
  /// for.
  template <typename Function>
  std::uint64_t Consistently(const Function& read) const;
  /// Sets the tickets of a counter by its value.
  void SetTickets();
  void CountLock() const { lock_acquisitions_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t CountVersion() { return version_.fetch_add(1, std::memory_order_acq_rel); }

  const VariableDef def_;
  const std::uint64_t bytes_;
  const bool is_counter_;
  at::Tensor buffer_;  // allocated once, never replaced: views of it may be on the wire
  std::atomic<bool> initialized_{false};
  std::atomic<std::uint64_t> version_{0};
  mutable std::atomic<std::uint64_t> lock_acquisitions_{0};
  // No two of these are held at once.
  mutable Mutex update_mutex_;
  Mutex init_mutex_;
  at::Tensor initial_value_ WEIR_GUARDED_BY(init_mutex_);  // of a Value initialiser, until it ran
  mutable Mutex slots_mutex_;
  std::map<std::string, at::Tensor> slots_ WEIR_GUARDED_BY(slots_mutex_);
  BlockHook block_hook_;
  StalenessHistogram staleness_;
  TicketBook tickets_;
};

template <typename Function>
absl::StatusOr<std::uint64_t> Variable::Update(bool use_locking, Function&& update) {
  WEIR_RETURN_IF_ERROR(CheckInitialized());
  if (use_locking || def_.use_locking || def_.consistent_reads) {
    CountLock();
    MutexLock lock(update_mutex_);
    std::forward<Function>(update)(static_cast<const at::Tensor&>(buffer_));
    return CountVersion();
  }
  std::forward<Function>(update)(static_cast<const at::Tensor&>(buffer_));
  return CountVersion();
}

template <typename Function>
std::uint64_t Variable::Consistently(const Function& read) const {
  if (!def_.consistent_reads) return read();
  CountLock();
  MutexLock lock(update_mutex_);
  return read();
}

}  // namespace weir::store
