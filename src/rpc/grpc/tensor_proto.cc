#include "rpc/grpc/tensor_proto.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/dtype.h"
#include "tensor/tensor_buffer.h"
#include "tensor/tensor_header.h"

namespace weir::rpc {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors travel as they lie in memory");

absl::Status CheckRank(std::size_t rank) {
  if (rank <= TensorHeader::kRankMax) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a tensor of ", rank, " dimensions; at most ",
                                                 TensorHeader::kRankMax, " can travel"));
}

}  // namespace

absl::StatusOr<std::uint32_t> DtypeToProto(at::ScalarType dtype) {
  const std::uint32_t code = DtypeCode(dtype);
  if (code == 0 && dtype != at::ScalarType::Undefined) {
    return absl::InvalidArgumentError(
        absl::StrCat("the type ", DtypeName(dtype), " cannot travel"));
  }
  return code;
}

absl::StatusOr<at::ScalarType> DtypeFromProto(std::uint32_t code) {
  if (code == 0) return at::ScalarType::Undefined;
  if (code > std::numeric_limits<std::uint8_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("unknown dtype code ", code));
  }
  return DtypeFromCode(static_cast<std::uint8_t>(code));
}

absl::Status ToProto(const at::Tensor& tensor, v1::Tensor* proto) {
  if (!tensor.defined()) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const std::uint32_t dtype, DtypeToProto(tensor.scalar_type()));
  WEIR_RETURN_IF_ERROR(CheckRank(static_cast<std::size_t>(tensor.dim())));
  return CatchAs(absl::StatusCode::kInvalidArgument, "a tensor cannot travel", [&] {
    const at::Tensor plain = tensor.detach().to(at::kCPU).resolve_conj().resolve_neg().contiguous();
    proto->set_dtype(dtype);
    proto->mutable_dims()->Add(plain.sizes().begin(), plain.sizes().end());
    proto->set_data(plain.const_data_ptr(), plain.nbytes());
  });
}

absl::StatusOr<at::Tensor> FromProto(const v1::Tensor& proto) {
  WEIR_ASSIGN_OR_RETURN(const at::ScalarType dtype, DtypeFromProto(proto.dtype()));
  if (dtype == at::ScalarType::Undefined) {
    if (proto.dims().empty() && proto.data().empty()) return at::Tensor();
    return absl::InvalidArgumentError("a tensor without a type");
  }
  const std::vector<std::int64_t> dims(proto.dims().begin(), proto.dims().end());
  WEIR_RETURN_IF_ERROR(CheckRank(dims.size()));
  WEIR_ASSIGN_OR_RETURN(const std::uint64_t bytes, TensorBytes(dtype, dims));
  if (bytes != proto.data().size()) {
    return absl::InvalidArgumentError(absl::StrCat("a tensor of ", bytes, " bytes comes with ",
                                                   proto.data().size(), " bytes of data"));
  }
  if (dtype == at::kBool) {
    WEIR_RETURN_IF_ERROR(CheckBools(std::as_bytes(std::span(proto.data()))));
  }
  at::Tensor tensor;
  WEIR_RETURN_IF_ERROR(CatchAs(absl::StatusCode::kInvalidArgument, "a tensor was refused", [&] {
    tensor = at::empty(dims, at::TensorOptions(dtype));
    std::ranges::copy(proto.data(), static_cast<char*>(tensor.mutable_data_ptr()));
  }));
  return tensor;
}

}  // namespace weir::rpc
