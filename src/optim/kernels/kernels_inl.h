// The loops, to be compiled once for each instruction set. Included by kernels_baseline.cc and
// kernels_avx2.cc alone.
//
// Nothing here may have external linkage, and nothing inline of the standard library may be called:
// the linker keeps one copy of such a function for the whole program, and it could be the one made
// of instructions that the machine does not have. Hence the unnamed namespace and the builtins.
#pragma once

#include <cstdint>

#include "optim/kernels/kernels.h"
#include "store/hogwild.h"

namespace weir::optim {
namespace {

// Exempt like their callers, as clang does not inline across that difference.
WEIR_HOGWILD inline float Fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
WEIR_HOGWILD inline double Fma(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
WEIR_HOGWILD inline float Sqrt(float x) {
  return __builtin_sqrtf(x);
}
WEIR_HOGWILD inline double Sqrt(double x) {
  return __builtin_sqrt(x);
}

template <typename T>
WEIR_HOGWILD void Sgd(const SgdPass<T>& pass, std::int64_t begin, std::int64_t end) {
  const auto [w, g, minus_lr] = pass;
  for (std::int64_t i = begin; i < end; ++i) w[i] = Fma(minus_lr, g[i], w[i]);
}

template <typename T>
WEIR_HOGWILD void PlainMomentum(const MomentumPass<T>& pass, std::int64_t begin, std::int64_t end) {
  const auto [w, a, g, lr, momentum, use_nesterov] = pass;
  for (std::int64_t i = begin; i < end; ++i) {
    const T sum = a[i] * momentum + g[i];
    a[i] = sum;
    w[i] = w[i] - sum * lr;
  }
}

template <typename T>
WEIR_HOGWILD void NesterovMomentum(const MomentumPass<T>& pass, std::int64_t begin,
                                   std::int64_t end) {
  const auto [w, a, g, lr, momentum, use_nesterov] = pass;
  for (std::int64_t i = begin; i < end; ++i) {
    const T gradient = g[i];
    const T sum = a[i] * momentum + gradient;
    a[i] = sum;
    w[i] = w[i] - (gradient * lr + (sum * momentum) * lr);
  }
}

template <typename T>
WEIR_HOGWILD void Momentum(const MomentumPass<T>& pass, std::int64_t begin, std::int64_t end) {
  pass.use_nesterov ? NesterovMomentum(pass, begin, end) : PlainMomentum(pass, begin, end);
}

template <typename T>
WEIR_HOGWILD void Adam(const AdamPass<T>& pass, std::int64_t begin, std::int64_t end) {
  const auto [w, m, v, g, alpha, one_minus_beta1, one_minus_beta2, epsilon] = pass;
  for (std::int64_t i = begin; i < end; ++i) {
    const T gradient = g[i];
    const T mean = m[i] + (gradient - m[i]) * one_minus_beta1;
    const T square = v[i] + (gradient * gradient - v[i]) * one_minus_beta2;
    m[i] = mean;
    v[i] = square;
    w[i] = w[i] - (mean * alpha) / (Sqrt(square) + epsilon);
  }
}

template <typename T>
constexpr Kernels<T> kKernels = {.sgd = Sgd<T>, .momentum = Momentum<T>, .adam = Adam<T>};

}  // namespace
}  // namespace weir::optim
