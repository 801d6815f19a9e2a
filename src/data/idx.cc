#include "data/idx.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "data/byte_source.h"

namespace weir {
namespace {

constexpr std::size_t kMagicBytes = 4;
constexpr std::size_t kRankMax = 4;
constexpr std::uint8_t kUnsignedByte = 0x08;

struct Header {
  std::vector<std::int64_t> sizes;
  std::int64_t file_bytes = 0;  // what the file should have, header included

  std::size_t bytes() const { return kMagicBytes * (1 + sizes.size()); }
};

std::string TypeName(std::uint8_t type) {
  switch (type) {
    case 0x09:
      return "signed byte";
    case 0x0B:
      return "short";
    case 0x0C:
      return "int";
    case 0x0D:
      return "float";
    case 0x0E:
      return "double";
    default:
      return "unknown";
  }
}

absl::Status WrongSize(const std::string& path, const std::string& expected, std::int64_t actual) {
  return absl::DataLossError(
      absl::StrCat(path, ": expected ", expected, " bytes, but the file has ", actual));
}

absl::Status CheckMagic(const std::string& path,
                        const std::array<std::uint8_t, kMagicBytes>& magic) {
  if (magic[0] != 0 || magic[1] != 0) {
    const std::string first(magic.begin(), magic.end());
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": not gzip and not IDX, its first bytes are \"", absl::CHexEscape(first), "\""));
  }
  if (magic[2] != kUnsignedByte) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: its element type is %s (0x%02X), only unsigned byte (0x08) is read",
                        path, TypeName(magic[2]), magic[2]));
  }
  if (magic[3] < 1 || magic[3] > kRankMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": its rank is ", magic[3], ", only 1 to ", kRankMax, " is read"));
  }
  return absl::OkStatus();
}

std::int64_t BigEndian32(const std::uint8_t* bytes) {
  return std::int64_t{bytes[0]} << 24 | std::int64_t{bytes[1]} << 16 | std::int64_t{bytes[2]} << 8 |
         std::int64_t{bytes[3]};
}

// Nullopt if no 64-bit number holds it. An empty dimension does not excuse the others: strides are
// computed from them all.
std::optional<std::int64_t> FileBytes(const Header& header) {
  std::int64_t elements = 1;
  bool empty = false;
  for (const std::int64_t size : header.sizes) {
    if (__builtin_mul_overflow(elements, std::max<std::int64_t>(size, 1), &elements)) {
      return std::nullopt;
    }
    empty = empty || size == 0;
  }
  std::int64_t bytes = 0;
  if (__builtin_add_overflow(empty ? 0 : elements, header.bytes(), &bytes)) return std::nullopt;
  return bytes;
}

absl::StatusOr<Header> ReadHeader(const std::string& path, ByteSource& source) {
  std::array<std::uint8_t, kMagicBytes> magic = {};
  WEIR_ASSIGN_OR_RETURN(const std::size_t magic_bytes, source.Read(magic.data(), magic.size()));
  if (magic_bytes < magic.size()) return WrongSize(path, "at least 4", magic_bytes);
  WEIR_RETURN_IF_ERROR(CheckMagic(path, magic));

  Header header{.sizes = std::vector<std::int64_t>(magic[3])};
  std::array<std::uint8_t, 4 * kRankMax> sizes = {};
  WEIR_ASSIGN_OR_RETURN(const std::size_t size_bytes,
                        source.Read(sizes.data(), 4 * header.sizes.size()));
  if (size_bytes < 4 * header.sizes.size()) {
    return WrongSize(path, absl::StrCat("at least ", header.bytes()), magic_bytes + size_bytes);
  }
  for (std::size_t i = 0; i < header.sizes.size(); ++i) {
    header.sizes[i] = BigEndian32(sizes.data() + 4 * i);
  }
  const auto file_bytes = FileBytes(header);
  if (!file_bytes) {
    return absl::DataLossError(absl::StrCat(path, ": its header has sizes that no file can have (",
                                            absl::StrJoin(header.sizes, " x "), ")"));
  }
  header.file_bytes = *file_bytes;
  return header;
}

absl::Status CheckSize(const std::string& path, const Header& header, ByteSource& source) {
  const auto actual = source.Size();
  if (!actual.ok()) {
    return Annotate(actual.status(), absl::StrCat("expected ", header.file_bytes, " bytes"));
  }
  if (*actual == header.file_bytes) return absl::OkStatus();
  return WrongSize(path, absl::StrCat(header.file_bytes), *actual);
}

// REQUIRES: CheckSize(). The file may still change under our hands, so the count is checked again.
absl::StatusOr<at::Tensor> ReadElements(const std::string& path, const Header& header,
                                        ByteSource& source) {
  at::Tensor tensor;
  WEIR_RETURN_IF_ERROR(CatchAs(absl::StatusCode::kResourceExhausted, path,
                               [&] { tensor = at::empty(header.sizes, at::kByte); }));
  std::array<char, kMagicBytes * (1 + kRankMax)> skipped;
  WEIR_RETURN_IF_ERROR(source.Rewind());
  WEIR_RETURN_IF_ERROR(source.Read(skipped.data(), header.bytes()).status());
  WEIR_ASSIGN_OR_RETURN(const std::size_t bytes, source.Read(tensor.data_ptr(), tensor.nbytes()));
  if (bytes < tensor.nbytes()) {
    return WrongSize(path, absl::StrCat(header.file_bytes), header.bytes() + bytes);
  }
  return tensor;
}

}  // namespace

absl::StatusOr<at::Tensor> ReadIdx(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  WEIR_ASSIGN_OR_RETURN(const Header header, ReadHeader(path, source));
  WEIR_RETURN_IF_ERROR(CheckSize(path, header, source));
  return ReadElements(path, header, source);
}

}  // namespace weir
