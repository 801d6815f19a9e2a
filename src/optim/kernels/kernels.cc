#include "optim/kernels/kernels.h"

namespace weir::optim {

#if defined(WEIR_KERNELS_AVX2)

// Of kernels_avx2.cc.
extern const Kernels<float> kAvx2FloatKernels;
extern const Kernels<double> kAvx2DoubleKernels;

namespace {
bool CanRunAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
}  // namespace

template <>
const Kernels<float>* Avx2Kernels<float>() {
  return CanRunAvx2() ? &kAvx2FloatKernels : nullptr;
}

template <>
const Kernels<double>* Avx2Kernels<double>() {
  return CanRunAvx2() ? &kAvx2DoubleKernels : nullptr;
}

#else

template <>
const Kernels<float>* Avx2Kernels<float>() {
  return nullptr;
}

template <>
const Kernels<double>* Avx2Kernels<double>() {
  return nullptr;
}

#endif

template <typename T>
const Kernels<T>& FastestKernels() {
  const Kernels<T>* const avx2 = Avx2Kernels<T>();
  return avx2 != nullptr ? *avx2 : BaselineKernels<T>();
}

template const Kernels<float>& FastestKernels<float>();
template const Kernels<double>& FastestKernels<double>();

}  // namespace weir::optim
