#include "tensor/tensor_header.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tensor/dtype.h"
#include "tensor/wire.h"

namespace weir {
namespace {

constexpr int kReservedBytes = 6;

absl::Status Malformed(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("malformed tensor header: ", what));
}

}  // namespace

absl::Status CheckCanTravel(const at::Tensor& tensor) {
  if (!tensor.defined()) return absl::OkStatus();
  if (tensor.layout() != at::kStrided || !tensor.device().is_cpu()) {
    return absl::InvalidArgumentError("only a dense tensor in host memory can travel");
  }
  if (DtypeCode(tensor.scalar_type()) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the type ", DtypeName(tensor.scalar_type()), " cannot travel"));
  }
  if (tensor.dim() > static_cast<std::int64_t>(TensorHeader::kRankMax)) {
    return absl::InvalidArgumentError(absl::StrCat("a tensor of ", tensor.dim(),
                                                   " dimensions; at most ", TensorHeader::kRankMax,
                                                   " can travel"));
  }
  return absl::OkStatus();
}

std::string EncodeTensorHeader(const TensorHeader& header) {
  WireWriter writer;
  writer.Number(DtypeCode(header.dtype));
  writer.Number(static_cast<std::uint8_t>(header.dims.size()));
  for (int i = 0; i < kReservedBytes; ++i) writer.Number(std::uint8_t{0});
  writer.Number(header.version);
  for (const std::int64_t dim : header.dims) writer.Number(dim);
  return writer.Take();
}

absl::StatusOr<TensorHeader> DecodeTensorHeader(std::span<const std::byte> body,
                                                std::uint64_t payload_bytes) {
  WireReader reader(body);
  TensorHeader header;
  const auto code = reader.Number<std::uint8_t>();
  const auto rank = reader.Number<std::uint8_t>();
  for (int i = 0; i < kReservedBytes; ++i) {
    if (reader.Number<std::uint8_t>() != 0) return Malformed("reserved bytes are set");
  }
  header.version = reader.Number<std::uint64_t>();
  if (rank > TensorHeader::kRankMax) return Malformed(absl::StrCat("rank ", rank));
  header.dims.resize(rank);
  for (std::int64_t& dim : header.dims) dim = reader.Number<std::int64_t>();
  if (!reader.done()) return Malformed(absl::StrCat(body.size(), " bytes for rank ", rank));
  if (code == 0) {
    if (rank != 0 || payload_bytes != 0) return Malformed("no tensor, yet dimensions or bytes");
    return header;
  }
  WEIR_ASSIGN_OR_RETURN(header.dtype, DtypeFromCode(code));
  WEIR_ASSIGN_OR_RETURN(const std::uint64_t bytes, TensorBytes(header.dtype, header.dims));
  if (bytes != payload_bytes) {
    return Malformed(absl::StrCat(payload_bytes, " bytes of payload for a tensor of ", bytes));
  }
  return header;
}

}  // namespace weir
