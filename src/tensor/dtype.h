// The element types that may cross the wire or a file, and their codes there.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace weir {

/// The code of `dtype` on the wire; 0 for Undefined and for types that never travel (quantised
/// ones).
std::uint8_t DtypeCode(at::ScalarType dtype);

/// InvalidArgument for a code that is none, 0 included.
absl::StatusOr<at::ScalarType> DtypeFromCode(std::uint8_t code);

/// "float32", "int64", ...: the names users write.
std::string DtypeName(at::ScalarType dtype);

/// Elements of `dims` times the size of `dtype`, checked: InvalidArgument for a negative dimension
/// or a product above 2^63 - 1. Dimensions of 0 do not excuse the others: libtorch multiplies those
/// for the strides, and throws when they overflow.
absl::StatusOr<std::uint64_t> TensorBytes(at::ScalarType dtype, at::IntArrayRef dims);

}  // namespace weir
