// The passes over memory that apply gradients: one fused, vectorised loop for each rule.
//
// Each is compiled twice from kernels_inl.h, once for any machine of the architecture and once for
// AVX2 and FMA, and chosen when the program runs. Both give the same bits: no multiplication and
// addition is fused behind our back (-ffp-contract=off), and where a rule wants them fused it says
// so, which a machine without the instruction then emulates (correctly, slowly).
#pragma once

#include <cstdint>

namespace weir::optim {

/// w = fma(-lr, g, w)
template <typename T>
struct SgdPass {
  T* w;
  const T* g;
  T minus_lr;
};

/// a = a * momentum + g; w = w - a * lr, or with Nesterov w = w - (g * lr + (a * momentum) * lr),
/// each operation rounded, as in ApplyMomentum of TensorFlow's training_ops.cc.
template <typename T>
struct MomentumPass {
  T* w;
  T* a;
  const T* g;
  T lr;
  T momentum;
  bool use_nesterov;
};

/// m = m + (g - m) * one_minus_beta1; v = v + (g * g - v) * one_minus_beta2;
/// w = w - (m * alpha) / (sqrt(v) + epsilon), each operation rounded, as in ApplyAdam of
/// training_ops.cc.
template <typename T>
struct AdamPass {
  T* w;
  T* m;
  T* v;
  const T* g;
  T alpha;
  T one_minus_beta1;
  T one_minus_beta2;
  T epsilon;
};

/// Each works on the elements [begin, end). Arrays may be the same or overlap; others may read and
/// write them meanwhile (see store/hogwild.h).
template <typename T>
struct Kernels {
  void (*sgd)(const SgdPass<T>& pass, std::int64_t begin, std::int64_t end);
  void (*momentum)(const MomentumPass<T>& pass, std::int64_t begin, std::int64_t end);
  void (*adam)(const AdamPass<T>& pass, std::int64_t begin, std::int64_t end);
};

/// The fastest that this machine can run. T is float or double.
template <typename T>
const Kernels<T>& FastestKernels();

template <typename T>
const Kernels<T>& BaselineKernels();

/// Null where this build has none or this machine cannot run them.
template <typename T>
const Kernels<T>* Avx2Kernels();

}  // namespace weir::optim
