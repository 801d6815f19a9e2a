#pragma once

#include "optim/kernels/step.h"

namespace weir::optim {

/// rms = rms + (g * g - rms) * one_minus_decay; momentum = momentum * mu + (g * lr) / sqrt(rms +
/// epsilon); w = w - momentum
template <typename T>
struct RmsPropStep {
  using Number = T;
  static constexpr int kSlots = 2;
  T lr;
  T one_minus_decay;
  T mu;
  T epsilon;

  WEIR_STEP void operator()(T g, T& w, T& rms, T& momentum) const {
    rms = rms + (g * g - rms) * one_minus_decay;
    momentum = momentum * mu + (g * lr) / Sqrt(rms + epsilon);
    w = w - momentum;
  }
};

/// As above, with mean = mean + (g - mean) * one_minus_decay and the variance rms - mean * mean in
/// the place of rms under the root.
template <typename T>
struct CenteredRmsPropStep {
  using Number = T;
  static constexpr int kSlots = 3;
  T lr;
  T one_minus_decay;
  T mu;
  T epsilon;

  WEIR_STEP void operator()(T g, T& w, T& rms, T& momentum, T& mean) const {
    rms = rms + (g * g - rms) * one_minus_decay;
    mean = mean + (g - mean) * one_minus_decay;
    momentum = momentum * mu + (g * lr) / Sqrt(rms - mean * mean + epsilon);
    w = w - momentum;
  }
};

}  // namespace weir::optim
