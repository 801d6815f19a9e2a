#include "optim/dense_pass.h"

#include <ATen/Parallel.h>
#include <torch/csrc/stable/c/shim.h>

#include "base/status.h"

namespace weir::optim {

bool IsWorthSplitting(std::int64_t elements) {
  return elements >= kParallelElements && at::get_num_threads() > 1;
}

// Through libtorch's C interface: the template at::parallel_for would start threads of its own
// OpenMP runtime in this object file, a second pool beside libtorch's.
void RunOnThreads(std::int64_t count, std::int64_t grain, const Range& range) {
  const auto call = [](std::int64_t begin, std::int64_t end, void* context) {
    (*static_cast<const Range*>(context))(begin, end);
  };
  const AOTITorchError error =
      torch_parallel_for(0, count, grain, call, const_cast<Range*>(&range));
  WEIR_CHECK(error == AOTI_TORCH_SUCCESS);  // kernels do not throw
}

}  // namespace weir::optim
