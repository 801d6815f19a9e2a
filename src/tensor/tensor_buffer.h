// Tensors seen as bytes, and bytes seen as tensors, without a copy.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "absl/status/status.h"
#include "base/buffer.h"

namespace weir {

/// The bytes of a contiguous tensor; the buffer keeps its storage alive. REQUIRES:
/// tensor.is_contiguous().
Buffer BufferOfTensor(const at::Tensor& tensor);

/// InvalidArgument when a byte of a bool tensor is neither 0 nor 1, and so no bool to the compiler.
absl::Status CheckBools(std::span<const std::byte> bytes);

/// A tensor over the bytes of `buffer`, which lives as long as the tensor's storage. REQUIRES: the
/// buffer has at least the tensor's size, which is one that TensorBytes accepts.
at::Tensor TensorOverBuffer(Buffer buffer, at::IntArrayRef dims, at::ScalarType dtype);

}  // namespace weir
