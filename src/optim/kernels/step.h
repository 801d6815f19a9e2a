// What a step is made of: the arithmetic of one element, as every optimizer's loop calls it.
//
// A step is a struct with the numbers of an update (rates, decays; already in the variable's type)
// and a call operator `(T g, T& w, T& slot...)` that takes one element of the gradient and updates
// one of the variable and of each slot. The loops around it are in kernels_inl.h, and are compiled
// once for each instruction set. So a step may call nothing that could be emitted as a function of
// its own, which the linker would keep once for the whole program: only builtins and what carries
// WEIR_STEP.
#pragma once

/// Inlined always, and like the loops around it exempt from ThreadSanitizer (see store/hogwild.h).
#define WEIR_STEP inline __attribute__((always_inline, no_sanitize("thread")))

namespace weir::optim {

WEIR_STEP float Fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
WEIR_STEP double Fma(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
WEIR_STEP float Sqrt(float x) {
  return __builtin_sqrtf(x);
}
WEIR_STEP double Sqrt(double x) {
  return __builtin_sqrt(x);
}
WEIR_STEP float Abs(float x) {
  return __builtin_fabsf(x);
}
WEIR_STEP double Abs(double x) {
  return __builtin_fabs(x);
}
WEIR_STEP float Power(float x, float y) {
  return __builtin_powf(x, y);
}
WEIR_STEP double Power(double x, double y) {
  return __builtin_pow(x, y);
}

/// sgn(x) * max(|x| - threshold, 0): what an L1 term of that weight makes of x. NaN stays NaN. A
/// zero is +0, not -0, which some would print.
template <typename T>
WEIR_STEP T Shrink(T x, T threshold) {
  const T rest = Abs(x) - threshold;
  const T magnitude = rest < T(0) ? T(0) : rest;
  return x < T(0) ? T(0) - magnitude : magnitude;
}

}  // namespace weir::optim
