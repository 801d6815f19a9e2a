#include "weir/safetensors.h"

#include <ATen/Functions.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/status.h"
#include "tensor/dtype.h"

namespace weir {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kHeaderBytesMax = 100'000'000;  // as the reference implementation

struct DtypeName {
  const char* name;
  at::ScalarType dtype;
};
constexpr std::array<DtypeName, 10> kDtypes = {{{"BOOL", at::kBool},
                                                {"U8", at::kByte},
                                                {"I8", at::kChar},
                                                {"I16", at::kShort},
                                                {"I32", at::kInt},
                                                {"I64", at::kLong},
                                                {"F16", at::kHalf},
                                                {"BF16", at::kBFloat16},
                                                {"F32", at::kFloat},
                                                {"F64", at::kDouble}}};

absl::StatusOr<std::string> NameOf(at::ScalarType dtype) {
  for (const DtypeName& entry : kDtypes) {
    if (entry.dtype == dtype) return std::string(entry.name);
  }
  return absl::InvalidArgumentError("safetensors has no " + weir::DtypeName(dtype));
}

absl::StatusOr<at::ScalarType> DtypeOf(const std::string& name) {
  for (const DtypeName& entry : kDtypes) {
    if (name == entry.name) return entry.dtype;
  }
  return absl::InvalidArgumentError("unknown dtype '" + name + "'");
}

absl::Status Failed(const std::string& what, const std::string& path) {
  return absl::UnavailableError(absl::StrCat(what, " '", path, "': ", std::strerror(errno)));
}

absl::Status WriteAll(int fd, const void* data, std::size_t size, const std::string& path) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::write(fd, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Failed("cannot write", path);
    bytes += n;
    size -= static_cast<std::size_t>(n);
  }
  return absl::OkStatus();
}

/// The header, padded with blanks so that the bytes after it are 8-byte aligned.
absl::StatusOr<std::string> MakeHeader(const std::map<std::string, at::Tensor>& tensors) {
  Json header = Json::object();
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    WEIR_ASSIGN_OR_RETURN(const std::string dtype, NameOf(tensor.scalar_type()));
    header[name] = {{"dtype", dtype},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {offset, offset + tensor.nbytes()}}};
    offset += tensor.nbytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

absl::Status WriteFile(int fd, const std::string& path, const std::string& header,
                       const std::map<std::string, at::Tensor>& tensors) {
  const std::uint64_t size = header.size();
  WEIR_RETURN_IF_ERROR(WriteAll(fd, &size, sizeof(size), path));
  WEIR_RETURN_IF_ERROR(WriteAll(fd, header.data(), header.size(), path));
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor dense = tensor.contiguous();
    WEIR_RETURN_IF_ERROR(WriteAll(fd, dense.data_ptr(), dense.nbytes(), path));
  }
  return ::fsync(fd) == 0 ? absl::OkStatus() : Failed("cannot flush", path);
}

struct Entry {
  at::ScalarType dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin;
  std::uint64_t bytes;
};

absl::StatusOr<Entry> ParseEntry(const Json& json, std::uint64_t data_bytes) {
  Entry entry;
  WEIR_ASSIGN_OR_RETURN(entry.dtype, DtypeOf(json.at("dtype").get<std::string>()));
  entry.shape = json.at("shape").get<std::vector<std::int64_t>>();
  const auto offsets = json.at("data_offsets").get<std::array<std::uint64_t, 2>>();
  WEIR_ASSIGN_OR_RETURN(entry.bytes, TensorBytes(entry.dtype, entry.shape));
  entry.begin = offsets[0];
  if (offsets[1] < offsets[0] || offsets[1] > data_bytes ||
      offsets[1] - offsets[0] != entry.bytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("offsets [%d, %d] do not fit its %d bytes and the file's %d", offsets[0],
                        offsets[1], entry.bytes, data_bytes));
  }
  return entry;
}

absl::StatusOr<std::map<std::string, Entry>> ParseHeader(const std::string& text,
                                                         std::uint64_t data_bytes) {
  try {
    std::map<std::string, Entry> entries;
    const Json header = Json::parse(text);
    for (const auto& [name, json] : header.items()) {
      if (name == "__metadata__") continue;
      auto entry = ParseEntry(json, data_bytes);
      if (!entry.ok()) return Annotate(entry.status(), "tensor '" + name + "'");
      entries[name] = *std::move(entry);
    }
    return entries;
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(std::string("the header is not a safetensors one: ") +
                                      error.what());
  }
}

}  // namespace

absl::Status SaveSafetensors(const std::string& path,
                             const std::map<std::string, at::Tensor>& tensors) {
  WEIR_ASSIGN_OR_RETURN(const std::string header, MakeHeader(tensors));
  const std::string temporary = path + ".tmp";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return Failed("cannot create", temporary);
  absl::Status status = WriteFile(fd, temporary, header, tensors);
  ::close(fd);
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0)
    status = Failed("cannot rename to", path);
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

absl::StatusOr<std::map<std::string, at::Tensor>> LoadSafetensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return absl::NotFoundError("cannot open '" + path + "'");
  const auto file_bytes = static_cast<std::uint64_t>(file.tellg());
  file.seekg(0);
  std::uint64_t header_bytes = 0;
  const bool has_length = file_bytes >= sizeof(header_bytes) &&
                          file.read(reinterpret_cast<char*>(&header_bytes), sizeof(header_bytes));
  if (!has_length || header_bytes > kHeaderBytesMax ||
      header_bytes > file_bytes - sizeof(header_bytes)) {
    return absl::InvalidArgumentError(absl::StrFormat("'%s': a header of %d bytes in a file of %d",
                                                      path, header_bytes, file_bytes));
  }
  std::string text(header_bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  const std::uint64_t data_begin = sizeof(header_bytes) + header_bytes;
  auto entries = ParseHeader(text, file_bytes - data_begin);
  if (!entries.ok()) return Annotate(entries.status(), "'" + path + "'");
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, entry] : *entries) {
    at::Tensor tensor = at::empty(entry.shape, entry.dtype);
    file.seekg(static_cast<std::streamoff>(data_begin + entry.begin));
    if (entry.bytes > 0 && !file.read(static_cast<char*>(tensor.data_ptr()),
                                      static_cast<std::streamsize>(entry.bytes))) {
      return absl::InvalidArgumentError("'" + path + "' was cut while it was read");
    }
    tensors[name] = std::move(tensor);
  }
  return tensors;
}

}  // namespace weir
