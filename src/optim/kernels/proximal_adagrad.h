#pragma once

#include "optim/kernels/step.h"

namespace weir::optim {

/// a = a + g * g; rate = lr / sqrt(a); v = w - g * rate;
/// w = sgn(v) * max(|v| - rate * l1, 0) / (1 + rate * l2)
template <typename T>
struct ProximalAdagradStep {
  using Number = T;
  static constexpr int kSlots = 1;
  T lr;
  T l1;
  T l2;

  WEIR_STEP void operator()(T g, T& w, T& a) const {
    a = a + g * g;
    const T rate = lr / Sqrt(a);
    w = Shrink(w - g * rate, rate * l1) / (T(1) + rate * l2);
  }
};

}  // namespace weir::optim
