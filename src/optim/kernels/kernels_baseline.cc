#include "optim/kernels/kernels_inl.h"

namespace weir::optim {

template <>
const Kernels<float>& BaselineKernels<float>() {
  return kKernels<float>;
}

template <>
const Kernels<double>& BaselineKernels<double>() {
  return kKernels<double>;
}

}  // namespace weir::optim
