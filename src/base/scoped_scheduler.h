// A part of a scheduler that one object can close without closing the whole.
#pragma once

#include <functional>
#include <memory>

#include "base/gate.h"
#include "base/scheduler.h"

namespace weir {

/// Passes work on to `base` (not owned, outlives this) until Close(); what was posted and has not
/// begun by then is dropped, so that work may refer to the object that owns this scheduler.
/// Thread-safe.
class ScopedScheduler final : public Scheduler {
 public:
  explicit ScopedScheduler(Scheduler& base) : base_(base), gate_(std::make_shared<Gate>()) {}

  void Post(std::function<void()> work) override;
  std::shared_ptr<Timer> PostAt(TimePoint when, std::function<void()> work) override;
  TimePoint Now() const override { return base_.Now(); }
  std::unique_ptr<Driver> NewDriver() override { return base_.NewDriver(); }
  void Close() override { gate_->Close(); }
  void Join() override { gate_->CloseAndWait(); }

 private:
  std::function<void()> Guarded(std::function<void()> work) const;

  Scheduler& base_;
  const std::shared_ptr<Gate> gate_;
};

}  // namespace weir
