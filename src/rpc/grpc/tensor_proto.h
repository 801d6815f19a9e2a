// Tensors in messages of the control plane: constants and initial values, not what steps exchange.
#pragma once

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/grpc/weir.pb.h"

namespace weir::rpc {

/// Copies `tensor` (undefined: no tensor). InvalidArgument for one that has no row-major form or
/// whose type has no code.
absl::Status ToProto(const at::Tensor& tensor, v1::Tensor* proto);

/// InvalidArgument unless the data is exactly what type and dimensions say. Allocates no more than
/// the message's own size.
absl::StatusOr<at::Tensor> FromProto(const v1::Tensor& proto);

/// As DtypeCode and DtypeFromCode, but Undefined is 0 and back; InvalidArgument for a type without
/// a code.
absl::StatusOr<std::uint32_t> DtypeToProto(at::ScalarType dtype);
absl::StatusOr<at::ScalarType> DtypeFromProto(std::uint32_t code);

}  // namespace weir::rpc
