// Tensors seen as bytes, and bytes seen as tensors, without a copy.
#pragma once

#include <ATen/core/Tensor.h>

#include "base/buffer.h"

namespace weir {

/// The bytes of a contiguous tensor; the buffer keeps its storage alive. REQUIRES:
/// tensor.is_contiguous().
Buffer BufferOfTensor(const at::Tensor& tensor);

/// A tensor over the bytes of `buffer`, which lives as long as the tensor's storage. REQUIRES: the
/// buffer has at least the tensor's size.
at::Tensor TensorOverBuffer(Buffer buffer, at::IntArrayRef dims, at::ScalarType dtype);

}  // namespace weir
