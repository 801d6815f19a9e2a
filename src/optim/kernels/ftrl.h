#pragma once

#include "optim/kernels/step.h"

namespace weir::optim {

/// n^0.5, the usual power, and a fast one.
template <typename T>
struct SquareRoot {
  WEIR_STEP T operator()(T n) const { return Sqrt(n); }
};

template <typename T>
struct AnyPower {
  T exponent;
  WEIR_STEP T operator()(T n) const { return Power(n, exponent); }
};

/// shrunk = g + two_shrinkage * w; n' = n + g * g;
/// z = z + shrunk - (root(n') - root(n)) / lr * w;
/// w = (sgn(z) * l1 - z) / (root(n') / lr + two_l2) where |z| > l1, else 0; n = n'.
/// `root` is n^-lr_power.
template <typename T, typename Root>
struct FtrlStep {
  using Number = T;
  static constexpr int kSlots = 2;
  T lr;
  T l1;
  T two_l2;
  T two_shrinkage;
  Root root;

  WEIR_STEP void operator()(T g, T& w, T& n, T& z) const {
    const T sum = n + g * g;
    const T root_of_sum = root(sum);
    z = z + (g + two_shrinkage * w) - (root_of_sum - root(n)) / lr * w;
    // A choice, not a product with 0: before any gradient, and without L2, the divisor is 0 too.
    const T rest = Shrink(z, l1);
    w = rest == T(0) ? T(0) : (T(0) - rest) / (root_of_sum / lr + two_l2);
    n = sum;
  }
};

template <typename T>
using FtrlSqrtStep = FtrlStep<T, SquareRoot<T>>;
template <typename T>
using FtrlPowerStep = FtrlStep<T, AnyPower<T>>;

}  // namespace weir::optim
