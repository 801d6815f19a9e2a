#pragma once

#include "optim/kernels/step.h"

namespace weir::optim {

/// squares = squares * rho + g * g * (1 - rho); u = sqrt(updates + epsilon) / sqrt(squares +
/// epsilon) * g; w = w - u * lr; updates = updates * rho + u * u * (1 - rho)
template <typename T>
struct AdadeltaStep {
  using Number = T;
  static constexpr int kSlots = 2;
  T lr;
  T rho;
  T one_minus_rho;
  T epsilon;

  WEIR_STEP void operator()(T g, T& w, T& squares, T& updates) const {
    squares = squares * rho + g * g * one_minus_rho;
    const T update = Sqrt(updates + epsilon) / Sqrt(squares + epsilon) * g;
    w = w - update * lr;
    updates = updates * rho + update * update * one_minus_rho;
  }
};

}  // namespace weir::optim
