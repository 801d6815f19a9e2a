// Compiled with -mavx2 -mfma: whatever is added here must not run before the machine is known to
// have both. The tables below are constants, which need no code to come into being.
#include "optim/kernels/kernels_avx2.h"

#include "optim/kernels/kernels_inl.h"

namespace weir::optim {

#define WEIR_DEFINE_PASSES(...) \
  template <>                   \
  constinit const Passes<__VA_ARGS__> CompiledForAvx2<__VA_ARGS__>::kPasses = kLoops<__VA_ARGS__>;
WEIR_FOR_EACH_STEP(WEIR_DEFINE_PASSES)
#undef WEIR_DEFINE_PASSES

}  // namespace weir::optim
