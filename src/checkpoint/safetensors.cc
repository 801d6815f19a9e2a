#include "weir/safetensors.h"

#include <ATen/Functions.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/status.h"
#include "store/dense.h"
#include "tensor/dtype.h"
#include "tensor/tensor_buffer.h"

namespace weir {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kHeaderBytesMax = 100'000'000;  // as the reference implementation

struct FormatDtype {
  const char* name;
  at::ScalarType dtype;
};
constexpr std::array<FormatDtype, 10> kDtypes = {{{"BOOL", at::kBool},
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
  for (const FormatDtype& entry : kDtypes) {
    if (entry.dtype == dtype) return std::string(entry.name);
  }
  return absl::InvalidArgumentError("safetensors has no " + DtypeName(dtype));
}

absl::StatusOr<at::ScalarType> DtypeOf(const std::string& name) {
  for (const FormatDtype& entry : kDtypes) {
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

absl::Status CheckSavable(const at::Tensor& tensor) {
  if (!tensor.defined()) return absl::InvalidArgumentError("it is undefined");
  if (tensor.layout() == at::kStrided && tensor.device().is_cpu()) return absl::OkStatus();
  return absl::InvalidArgumentError("only a dense tensor in host memory can be saved");
}

/// The header, padded with blanks so that the bytes after it are 8-byte aligned.
absl::StatusOr<std::string> MakeHeader(const std::map<std::string, at::Tensor>& tensors) {
  Json header = Json::object();
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    WEIR_RETURN_IF_ERROR(Annotate(CheckSavable(tensor), "tensor '" + name + "'"));
    const auto dtype = NameOf(tensor.scalar_type());
    if (!dtype.ok()) return Annotate(dtype.status(), "tensor '" + name + "'");
    header[name] = {{"dtype", *dtype},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {offset, offset + tensor.nbytes()}}};
    offset += tensor.nbytes();
  }
  std::string text;
  WEIR_RETURN_IF_ERROR(CatchAs(absl::StatusCode::kInvalidArgument, "a name that is not UTF-8",
                               [&] { text = header.dump(); }));
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

absl::Status WriteFile(int fd, const std::string& path, const std::string& header,
                       const std::map<std::string, at::Tensor>& tensors) {
  const std::uint64_t size = header.size();
  WEIR_RETURN_IF_ERROR(WriteAll(fd, &size, sizeof(size), path));
  WEIR_RETURN_IF_ERROR(WriteAll(fd, header.data(), header.size(), path));
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor plain = store::ToPlain(tensor);
    WEIR_RETURN_IF_ERROR(WriteAll(fd, plain.const_data_ptr(), plain.nbytes(), path));
  }
  return ::fsync(fd) == 0 ? absl::OkStatus() : Failed("cannot flush", path);
}

/// A rename is on the disk only when its directory is.
absl::Status FlushDirectoryOf(const std::string& path) {
  std::string directory = std::filesystem::path(path).parent_path().string();
  if (directory.empty()) directory = ".";
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Failed("cannot open", directory);
  const absl::Status status =
      ::fsync(fd) == 0 ? absl::OkStatus() : Failed("cannot flush", directory);
  ::close(fd);
  return status;
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
  for (const char* numbers : {"shape", "data_offsets"}) {
    for (const Json& number : json.at(numbers)) {
      if (!number.is_number_integer())  // which get() would make of 2.7
        return absl::InvalidArgumentError(absl::StrCat(numbers, " holds ", number.dump()));
    }
  }
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

/// Entries that share bytes could ask for any amount of memory; bytes of no entry are not the
/// format's either.
absl::Status CheckTiling(const std::map<std::string, Entry>& entries, std::uint64_t data_bytes) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const auto& [name, entry] : entries) ranges.emplace_back(entry.begin, entry.bytes);
  std::sort(ranges.begin(), ranges.end());
  ranges.emplace_back(data_bytes, 0);  // whatever comes last ends there
  std::uint64_t end = 0;
  for (const auto& [begin, bytes] : ranges) {
    if (begin != end) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "the tensors' bytes overlap, or leave a hole, at offset %d of %d", end, data_bytes));
    }
    end += bytes;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, Entry>> ParseHeader(const std::string& text,
                                                         std::uint64_t data_bytes) {
  try {
    std::map<std::string, Entry> entries;
    const Json header = Json::parse(text);
    if (!header.is_object()) return absl::InvalidArgumentError("the header is no JSON object");
    for (const auto& [name, json] : header.items()) {
      if (name == "__metadata__") continue;
      auto entry = ParseEntry(json, data_bytes);
      if (!entry.ok()) return Annotate(entry.status(), "tensor '" + name + "'");
      entries[name] = *std::move(entry);
    }
    WEIR_RETURN_IF_ERROR(CheckTiling(entries, data_bytes));
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
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return FlushDirectoryOf(path);
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
    at::Tensor tensor;
    WEIR_RETURN_IF_ERROR(CatchAs(absl::StatusCode::kResourceExhausted,
                                 "'" + path + "': tensor '" + name + "'",
                                 [&] { tensor = at::empty(entry.shape, entry.dtype); }));
    file.seekg(static_cast<std::streamoff>(data_begin + entry.begin));
    if (entry.bytes > 0 && !file.read(static_cast<char*>(tensor.data_ptr()),
                                      static_cast<std::streamsize>(entry.bytes))) {
      return absl::InvalidArgumentError("'" + path + "' was cut while it was read");
    }
    if (entry.dtype == at::kBool) {
      const auto* bytes = static_cast<const std::byte*>(tensor.const_data_ptr());
      WEIR_RETURN_IF_ERROR(
          Annotate(CheckBools({bytes, entry.bytes}), "'" + path + "': tensor '" + name + "'"));
    }
    tensors[name] = std::move(tensor);
  }
  return tensors;
}

}  // namespace weir
