#pragma once

#include "optim/kernels/step.h"

namespace weir::optim {

/// v = w - g * lr; w = sgn(v) * max(|v| - lr_l1, 0) / one_plus_lr_l2
template <typename T>
struct ProximalGradientDescentStep {
  using Number = T;
  static constexpr int kSlots = 0;
  T lr;
  T lr_l1;
  T one_plus_lr_l2;

  WEIR_STEP void operator()(T g, T& w) const { w = Shrink(w - g * lr, lr_l1) / one_plus_lr_l2; }
};

}  // namespace weir::optim
