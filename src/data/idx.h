// IDX files, the format of MNIST: a magic number (two zero bytes, the element type, the rank), one
// big-endian 32-bit size for each dimension, then the elements, last dimension fastest
// (http://yann.lecun.com/exdb/mnist).
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "absl/status/statusor.h"

namespace weir {

/// The tensor in the IDX file at `path`: uint8, contiguous, rank 1 to 4. A gzip file is recognised
/// by its content, whatever its name is. What the header says is compared with the bytes there are
/// before memory is taken, so that a broken file costs none.
///
/// Errors name the file. NotFound and the like from the system; InvalidArgument for what is no IDX
/// file, another element type than unsigned byte, another rank; DataLoss, with the bytes expected
/// and found, for one that is shorter or longer than its header says, or damaged gzip data;
/// ResourceExhausted when there is no memory.
absl::StatusOr<at::Tensor> ReadIdx(const std::string& path);

}  // namespace weir
