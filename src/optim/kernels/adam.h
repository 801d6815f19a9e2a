#pragma once

#include "optim/kernels/step.h"

namespace weir::optim {

/// The moving means of the gradient and of its square: m = m + (g - m) * one_minus_beta1;
/// v = v + (g * g - v) * one_minus_beta2, each operation rounded, as in ApplyAdam of TensorFlow's
/// training_ops.cc.
template <typename T>
struct Moments {
  T one_minus_beta1;
  T one_minus_beta2;

  WEIR_STEP void operator()(T g, T& m, T& v) const {
    m = m + (g - m) * one_minus_beta1;
    v = v + (g * g - v) * one_minus_beta2;
  }
};

/// The moments; then w = w - (m * alpha) / (sqrt(v) + epsilon).
template <typename T>
struct AdamStep {
  using Number = T;
  static constexpr int kSlots = 2;
  Moments<T> moments;
  T alpha;
  T epsilon;

  WEIR_STEP void operator()(T g, T& w, T& m, T& v) const {
    moments(g, m, v);
    w = w - (m * alpha) / (Sqrt(v) + epsilon);
  }
};

}  // namespace weir::optim
