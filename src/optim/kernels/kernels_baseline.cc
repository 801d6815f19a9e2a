#include "optim/kernels/kernels_inl.h"

namespace weir::optim {

#define WEIR_DEFINE_PASSES(...)                              \
  template <>                                                \
  const Passes<__VA_ARGS__>& BaselinePasses<__VA_ARGS__>() { \
    return kLoops<__VA_ARGS__>;                              \
  }
WEIR_FOR_EACH_STEP(WEIR_DEFINE_PASSES)
#undef WEIR_DEFINE_PASSES

}  // namespace weir::optim
