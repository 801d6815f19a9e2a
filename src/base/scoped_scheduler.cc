#include "base/scoped_scheduler.h"

#include <utility>

namespace weir {

std::function<void()> ScopedScheduler::Guarded(std::function<void()> work) const {
  return [gate = gate_, work = std::move(work)] {
    GatePass pass(*gate);
    if (pass.IsIn()) work();
  };
}

void ScopedScheduler::Post(std::function<void()> work) {
  base_.Post(Guarded(std::move(work)));
}

std::shared_ptr<Timer> ScopedScheduler::PostAt(TimePoint when, std::function<void()> work) {
  return base_.PostAt(when, Guarded(std::move(work)));
}

}  // namespace weir
