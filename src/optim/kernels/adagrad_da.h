#pragma once

#include "optim/kernels/step.h"

namespace weir::optim {

/// sum = sum + g; squares = squares + g * g;
/// w = -(sgn(sum) * max(|sum| - l1_t, 0) * lr) / (l2_t_lr + sqrt(squares)), whatever w was.
template <typename T>
struct AdagradDaStep {
  using Number = T;
  static constexpr int kSlots = 2;
  T lr;
  T l1_t;     // l1 * T, with T the number of the training step, from 1
  T l2_t_lr;  // l2 * T * lr

  WEIR_STEP void operator()(T g, T& w, T& sum, T& squares) const {
    sum = sum + g;
    squares = squares + g * g;
    w = (T(0) - Shrink(sum, l1_t) * lr) / (l2_t_lr + Sqrt(squares));
  }
};

}  // namespace weir::optim
