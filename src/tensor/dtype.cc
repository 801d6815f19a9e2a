#include "tensor/dtype.h"

#include <array>
#include <limits>

#include "absl/strings/str_cat.h"

namespace weir {
namespace {

struct DtypeEntry {
  std::uint8_t code;
  at::ScalarType dtype;
  const char* name;
};

// Codes are part of the wire format: never renumber, only append.
constexpr std::array<DtypeEntry, 12> kDtypes = {{
    {1, at::kBool, "bool"},
    {2, at::kByte, "uint8"},
    {3, at::kChar, "int8"},
    {4, at::kShort, "int16"},
    {5, at::kInt, "int32"},
    {6, at::kLong, "int64"},
    {7, at::kHalf, "float16"},
    {8, at::kBFloat16, "bfloat16"},
    {9, at::kFloat, "float32"},
    {10, at::kDouble, "float64"},
    {11, at::kComplexFloat, "complex64"},
    {12, at::kComplexDouble, "complex128"},
}};

}  // namespace

std::uint8_t DtypeCode(at::ScalarType dtype) {
  for (const DtypeEntry& entry : kDtypes) {
    if (entry.dtype == dtype) return entry.code;
  }
  return 0;
}

absl::StatusOr<at::ScalarType> DtypeFromCode(std::uint8_t code) {
  if (code == 0 || code > kDtypes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("unknown dtype code ", code));
  }
  return kDtypes[code - 1u].dtype;
}

std::string DtypeName(at::ScalarType dtype) {
  for (const DtypeEntry& entry : kDtypes) {
    if (entry.dtype == dtype) return entry.name;
  }
  return dtype == at::ScalarType::Undefined ? "none" : at::toString(dtype);
}

absl::StatusOr<std::uint64_t> TensorBytes(at::ScalarType dtype, at::IntArrayRef dims) {
  std::uint64_t bytes = c10::elementSize(dtype);
  bool is_empty = false;
  for (const std::int64_t dim : dims) {
    if (dim < 0) {
      return absl::InvalidArgumentError(absl::StrCat("negative dimension ", dim));
    }
    if (dim == 0) {
      is_empty = true;
    } else if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dim), &bytes) ||
               bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return absl::InvalidArgumentError("a tensor of more than 2^63 bytes");
    }
  }
  return is_empty ? 0 : bytes;
}

}  // namespace weir
