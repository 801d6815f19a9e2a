// Counts work in flight, so that what the work uses can be taken away safely.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/mutex.h"

namespace weir {

/// Work enters before it begins and leaves when it is over; a closed gate lets nobody in and tells
/// when the last one has left. Thread-safe.
///
///   if (!gate.Enter()) return absl::CancelledError("closing");
///   StartWork([&gate] { gate.Leave(); });
///   ...
///   gate.Close([self] { self->EverythingHasEnded(); });
///
/// The gate may be destroyed as soon as it is closed and empty, even by the callback.
class Gate {
 public:
  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// False after Close(): the caller must not begin.
  [[nodiscard]] bool Enter();

  /// For what those inside begin: also true after Close(), until the last one has left.
  [[nodiscard]] bool EnterUntilEmpty();

  /// REQUIRES: an Enter() that returned true and has not been answered by a Leave().
  void Leave();

  /// Lets nobody in from now on. `when_empty` is called once: inside this call when nobody is in,
  /// else by the thread that leaves last. May be called again; each callback is called.
  void Close(std::function<void()> when_empty = nullptr);

  /// Closes, and blocks until everybody has left. REQUIRES: the caller is not in.
  void CloseAndWait();

  bool IsClosed() const;

 private:
  mutable Mutex mutex_;
  bool closed_ WEIR_GUARDED_BY(mutex_) = false;
  std::int64_t inside_ WEIR_GUARDED_BY(mutex_) = 0;
  std::vector<std::function<void()>> when_empty_ WEIR_GUARDED_BY(mutex_);
};

/// Leaves the gate at the end of a scope. Tells by IsIn() whether it could enter.
class GatePass {
 public:
  explicit GatePass(Gate& gate) : gate_(gate.Enter() ? &gate : nullptr) {}
  ~GatePass() {
    if (gate_ != nullptr) gate_->Leave();
  }
  GatePass(const GatePass&) = delete;
  GatePass& operator=(const GatePass&) = delete;

  bool IsIn() const { return gate_ != nullptr; }

 private:
  Gate* const gate_;
};

}  // namespace weir
