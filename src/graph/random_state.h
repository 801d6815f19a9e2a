// libtorch's generator of the process, left as it was.
#pragma once

#include <ATen/core/Tensor.h>

#include "base/mutex.h"

namespace weir::graph {

/// While it lives random numbers may be drawn from the generator of the process without a trace:
/// afterwards it goes on from where it was. One at a time in a process; a thread that has one makes
/// no second. Draws of other threads meanwhile are forgotten too, so that they are drawn again:
/// libtorch locks its generator for each draw, not for several.
class KeptRandomState {
 public:
  KeptRandomState() WEIR_NO_THREAD_SAFETY_ANALYSIS;
  ~KeptRandomState() WEIR_NO_THREAD_SAFETY_ANALYSIS;
  KeptRandomState(const KeptRandomState&) = delete;
  KeptRandomState& operator=(const KeptRandomState&) = delete;

 private:
  at::Tensor state_;
};

}  // namespace weir::graph
