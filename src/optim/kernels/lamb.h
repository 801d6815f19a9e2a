#pragma once

#include "optim/kernels/adam.h"

namespace weir::optim {

/// The moments; then `w`, a copy of the weight, becomes the direction of the update before it is
/// scaled: (m * m_scale) / (sqrt(v * v_scale) + epsilon) + w * weight_decay.
template <typename T>
struct LambDirectionStep {
  using Number = T;
  static constexpr int kSlots = 2;
  Moments<T> moments;
  T m_scale;  // 1 / (1 - beta1^t)
  T v_scale;  // 1 / (1 - beta2^t)
  T epsilon;
  T weight_decay;

  WEIR_STEP void operator()(T g, T& w, T& m, T& v) const {
    moments(g, m, v);
    w = (m * m_scale) / (Sqrt(v * v_scale) + epsilon) + w * weight_decay;
  }
};

}  // namespace weir::optim
