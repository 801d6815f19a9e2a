// Where kernels_avx2.cc, compiled for machines that have it, leaves its passes.
#pragma once

#include "optim/kernels/kernels.h"

namespace weir::optim {

template <typename Step>
struct CompiledForAvx2 {
  static const Passes<Step> kPasses;
};

#define WEIR_DECLARE_PASSES(...) \
  template <>                    \
  const Passes<__VA_ARGS__> CompiledForAvx2<__VA_ARGS__>::kPasses;
WEIR_FOR_EACH_STEP(WEIR_DECLARE_PASSES)
#undef WEIR_DECLARE_PASSES

}  // namespace weir::optim
