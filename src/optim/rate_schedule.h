// A LearningRate, checked and ready to be asked.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "weir/learning_rate.h"

namespace weir::optim {

/// Immutable; may be asked by several threads at once.
class RateSchedule {
 public:
  /// The rate may have come from another process. InvalidArgument: an unknown schedule; a missing,
  /// unknown or non-finite number; a decay or a warm-up over no steps; boundaries that do not rise.
  static absl::StatusOr<RateSchedule> Make(const LearningRate& rate);

  /// The rate of the step that `step` steps come before.
  double At(std::int64_t step) const { return rate_(static_cast<double>(step)); }
  /// Then the step does not matter.
  bool is_constant() const { return is_constant_; }

 private:
  using Function = std::function<double(double step)>;
  RateSchedule(Function rate, bool is_constant)
      : rate_(std::move(rate)), is_constant_(is_constant) {}

  Function rate_;
  bool is_constant_;
};

}  // namespace weir::optim
