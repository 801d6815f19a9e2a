// Where a session's steps are run: by this process's master, or by one elsewhere.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/scheduler.h"
#include "graph/passes.h"
#include "runtime/master.h"

namespace weir::runtime {

/// Thread-safe.
class SessionBackend {
 public:
  struct Plan {
    virtual ~Plan() = default;
    std::string dump;
  };

  virtual ~SessionBackend() = default;

  /// Blocks while the plan is made; cheap for one that exists.
  virtual absl::StatusOr<std::shared_ptr<const Plan>> MakePlan(
      const graph::Signature& signature) = 0;
  /// True when the plan must be made again: a task has lost it.
  virtual bool IsStale(const Plan& plan) const = 0;
  /// Blocks until the step has ended, working on it by `driver` meanwhile.
  virtual absl::StatusOr<StepResult> RunStep(const std::shared_ptr<const Plan>& plan,
                                             std::vector<at::Tensor> feeds, TimePoint deadline,
                                             const std::shared_ptr<Driver>& driver) = 0;
  virtual absl::Status Close() = 0;
};

}  // namespace weir::runtime
