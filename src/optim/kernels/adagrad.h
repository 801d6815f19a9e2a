#pragma once

#include "optim/kernels/step.h"

namespace weir::optim {

/// a = a + g * g; w = w - (g * lr) / sqrt(a)
template <typename T>
struct AdagradStep {
  using Number = T;
  static constexpr int kSlots = 1;
  T lr;

  WEIR_STEP void operator()(T g, T& w, T& a) const {
    a = a + g * g;
    w = w - (g * lr) / Sqrt(a);
  }
};

}  // namespace weir::optim
