// Tensors in files of the safetensors format (github.com/huggingface/safetensors): 8 bytes of
// header length, a JSON header {"name": {"dtype", "shape", "data_offsets"}}, then the raw
// little-endian bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace weir {

/// Writes `tensors` under a temporary name, flushes it, and renames it to `path`: a reader sees the
/// whole file or none. Unavailable with path and errno text; InvalidArgument for a dtype the format
/// lacks.
absl::Status SaveSafetensors(const std::string& path,
                             const std::map<std::string, at::Tensor>& tensors);

/// Reads such a file. Everything is checked before it is used: NotFound, or InvalidArgument naming
/// what does not fit (header length, JSON, dtype, offsets against shape and file size).
absl::StatusOr<std::map<std::string, at::Tensor>> LoadSafetensors(const std::string& path);

}  // namespace weir
