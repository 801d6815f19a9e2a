// Compiled with -mavx2 -mfma: whatever is added here must not run before the machine is known to
// have both. The two tables below are constants, which need no code to come into being.
#include "optim/kernels/kernels_inl.h"

namespace weir::optim {

extern const Kernels<float> kAvx2FloatKernels;
extern const Kernels<double> kAvx2DoubleKernels;

constinit const Kernels<float> kAvx2FloatKernels = kKernels<float>;
constinit const Kernels<double> kAvx2DoubleKernels = kKernels<double>;

}  // namespace weir::optim
