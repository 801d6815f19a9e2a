#pragma once

#include "optim/kernels/step.h"

namespace weir::optim {

/// w = w - rate * (w - g): the average w moves towards the value g.
template <typename T>
struct MovingAverageStep {
  using Number = T;
  static constexpr int kSlots = 0;
  T rate;

  WEIR_STEP void operator()(T g, T& w) const { w = w - rate * (w - g); }
};

}  // namespace weir::optim
