// The body of a kTensor frame: what the raw bytes of the payload mean. docs/wire_format.md.
//
//   offset  bytes  field
//        0      1  dtype code; 0: no tensor (an absent gradient, a control signal)
//        1      1  rank, at most kRankMax
//        2      6  reserved, 0
//        8      8  version of the variable that was read, echoed by the gradient computed from it
//       16  8*rank dimensions
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace weir {

struct TensorHeader {
  static constexpr std::size_t kRankMax = 32;
  at::ScalarType dtype = at::ScalarType::Undefined;  // Undefined: no tensor
  std::uint64_t version = 0;
  std::vector<std::int64_t> dims;
};

/// InvalidArgument when a tensor cannot travel: of a type without a code, of more than kRankMax
/// dimensions, sparse, or not in host memory. Undefined can: it is absent on the other side too.
absl::Status CheckCanTravel(const at::Tensor& tensor);

std::string EncodeTensorHeader(const TensorHeader& header);

/// InvalidArgument for a body that is no such header. `payload_bytes` must be what dtype and
/// dimensions say.
absl::StatusOr<TensorHeader> DecodeTensorHeader(std::span<const std::byte> body,
                                                std::uint64_t payload_bytes);

}  // namespace weir
