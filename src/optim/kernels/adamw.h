#pragma once

#include "optim/kernels/adam.h"

namespace weir::optim {

/// w = w * keep, with keep = 1 - lr * weight_decay; then as Adam.
template <typename T>
struct AdamWStep {
  using Number = T;
  static constexpr int kSlots = 2;
  AdamStep<T> adam;
  T keep;

  WEIR_STEP void operator()(T g, T& w, T& m, T& v) const {
    w = w * keep;
    adam(g, w, m, v);
  }
};

}  // namespace weir::optim
