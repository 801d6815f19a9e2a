// What the rules of Adam's family share: two decays, their powers, two moving means.
#pragma once

#include <ATen/core/Tensor.h>

#include "optim/kernels/adam.h"
#include "optim/rules.h"

namespace weir::optim {

/// The decays and how far they have come: beta^t of the update that comes next, kept beside the
/// variable as slots "beta1_power" and "beta2_power". In float64 whatever the variable is: in
/// float32, 1 - beta2^t is wrong in its fifth digit when training begins.
class BetaPowers {
 public:
  /// InvalidArgument unless both are in [0, 1): a beta of 1 would divide by zero in the first
  /// update.
  static absl::StatusOr<BetaPowers> Make(const RuleContext& context, double beta1, double beta2);

  double one_minus_power1() const;
  double one_minus_power2() const;
  /// One update has been applied. Atomic even where the rest of an update is not, so that every
  /// update is counted whoever else is at it. Two that run at once may still both see the power of
  /// the earlier one.
  void Advance() const;

  template <typename T>
  Moments<T> moments() const {
    return {.one_minus_beta1 = static_cast<T>(1 - beta1_),
            .one_minus_beta2 = static_cast<T>(1 - beta2_)};
  }

 private:
  double beta1_ = 0;
  double beta2_ = 0;
  at::Tensor power1_;
  at::Tensor power2_;
};

/// Slots "m" and "v".
absl::StatusOr<std::array<at::Tensor, 2>> MakeMoments(const RuleContext& context);

}  // namespace weir::optim
