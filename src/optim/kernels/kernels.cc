#include "optim/kernels/kernels.h"

#if defined(WEIR_KERNELS_AVX2)
#include "optim/kernels/kernels_avx2.h"
#endif

namespace weir::optim {

template <typename Step>
const Passes<Step>* Avx2Passes() {
#if defined(WEIR_KERNELS_AVX2)
  static const bool can_run = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return can_run ? &CompiledForAvx2<Step>::kPasses : nullptr;
#else
  return nullptr;
#endif
}

template <typename Step>
const Passes<Step>& FastestPasses() {
  const Passes<Step>* const avx2 = Avx2Passes<Step>();
  return avx2 != nullptr ? *avx2 : BaselinePasses<Step>();
}

#define WEIR_INSTANTIATE_PASSES(...)                             \
  template const Passes<__VA_ARGS__>* Avx2Passes<__VA_ARGS__>(); \
  template const Passes<__VA_ARGS__>& FastestPasses<__VA_ARGS__>();
WEIR_FOR_EACH_STEP(WEIR_INSTANTIATE_PASSES)
#undef WEIR_INSTANTIATE_PASSES

}  // namespace weir::optim
