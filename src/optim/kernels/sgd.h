#pragma once

#include "optim/kernels/step.h"

namespace weir::optim {

/// w = fma(-lr, g, w)
template <typename T>
struct SgdStep {
  using Number = T;
  static constexpr int kSlots = 0;
  T minus_lr;

  WEIR_STEP void operator()(T g, T& w) const { w = Fma(minus_lr, g, w); }
};

}  // namespace weir::optim
