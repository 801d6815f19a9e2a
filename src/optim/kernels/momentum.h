#pragma once

#include "optim/kernels/step.h"

namespace weir::optim {

/// a = a * momentum + g; w = w - a * lr, each operation rounded, as in ApplyMomentum of
/// TensorFlow's training_ops.cc.
template <typename T>
struct MomentumStep {
  using Number = T;
  static constexpr int kSlots = 1;
  T lr;
  T momentum;

  WEIR_STEP void operator()(T g, T& w, T& a) const {
    a = a * momentum + g;
    w = w - a * lr;
  }
};

/// a as above; w = w - (g * lr + (a * momentum) * lr).
template <typename T>
struct NesterovStep {
  using Number = T;
  static constexpr int kSlots = 1;
  T lr;
  T momentum;

  WEIR_STEP void operator()(T g, T& w, T& a) const {
    a = a * momentum + g;
    w = w - (g * lr + (a * momentum) * lr);
  }
};

}  // namespace weir::optim
