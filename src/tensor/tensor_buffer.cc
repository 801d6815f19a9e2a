#include "tensor/tensor_buffer.h"

#include <ATen/Functions.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace weir {

Buffer BufferOfTensor(const at::Tensor& tensor) {
  auto owner = std::make_shared<at::Tensor>(tensor.detach());
  auto* data = static_cast<std::byte*>(owner->data_ptr());
  return Buffer{std::move(owner), data, tensor.nbytes()};
}

absl::Status CheckBools(std::span<const std::byte> bytes) {
  const bool fine =
      std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte <= std::byte{1}; });
  if (fine) return absl::OkStatus();
  return absl::InvalidArgumentError("a bool tensor with a byte that is neither 0 nor 1");
}

at::Tensor TensorOverBuffer(Buffer buffer, at::IntArrayRef dims, at::ScalarType dtype) {
  void* data = buffer.data;
  return at::from_blob(
      data, dims, [owner = std::move(buffer.owner)](void*) mutable { owner.reset(); }, dtype);
}

}  // namespace weir
