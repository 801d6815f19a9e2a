// Tensors that may be handed to a loop over raw memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "absl/status/status.h"

namespace weir::store {

/// "float32 [2, 3]".
std::string DescribeTensor(at::ScalarType dtype, at::IntArrayRef shape);

/// InvalidArgument unless `value` is a strided tensor in host memory of that dtype and shape.
/// `what` begins the message: "gradient of variable \"w\"".
absl::Status CheckDense(const at::Tensor& value, at::ScalarType dtype, at::IntArrayRef shape,
                        const std::string& what);

/// `value` itself when its bytes are plain (contiguous, no pending negation or conjugation, not one
/// of autograd's zero tensors, which have no memory), else a copy that is. REQUIRES: CheckDense.
at::Tensor ToPlain(const at::Tensor& value);

}  // namespace weir::store
