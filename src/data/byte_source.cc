#include "data/byte_source.h"

#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weir {
namespace {

// zlib takes and returns an int; the window is large enough for plain files to be read straight
// into the caller's memory.
constexpr std::size_t kReadBytesMax = std::size_t{1} << 24;
constexpr std::size_t kCountBufferBytes = std::size_t{1} << 16;

absl::Status SystemError(const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
}

}  // namespace

void ByteSource::Close::operator()(gzFile_s* file) const {
  gzclose_r(file);
}

absl::StatusOr<ByteSource> ByteSource::Open(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return SystemError(path);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  }
  errno = 0;
  gzFile file = gzopen(path.c_str(), "rbe");
  if (file == nullptr) return SystemError(path);
  return ByteSource(path, info.st_size, file);
}

absl::StatusOr<std::size_t> ByteSource::Read(void* data, std::size_t bytes_max) {
  std::size_t bytes = 0;
  while (bytes < bytes_max) {
    const auto wanted = static_cast<unsigned>(std::min(bytes_max - bytes, kReadBytesMax));
    const int got = gzread(file_.get(), static_cast<char*>(data) + bytes, wanted);
    if (got < 0) return StreamError();
    bytes += static_cast<std::size_t>(got);
    if (got == 0) break;
  }
  // A gzip file that is cut short looks like one that ends, except for this.
  int code = Z_OK;
  gzerror(file_.get(), &code);
  if (code == Z_BUF_ERROR) return StreamError();
  return bytes;
}

absl::Status ByteSource::StreamError() const {
  int code = Z_OK;
  const std::string text = gzerror(file_.get(), &code);  // begins with the path
  if (code == Z_ERRNO) return SystemError(path_);
  return absl::DataLossError(absl::StrCat(text, ": the gzip data are damaged or cut short after ",
                                          gztell(file_.get()), " decompressed bytes"));
}

absl::StatusOr<std::int64_t> ByteSource::Count() {
  std::vector<char> buffer(kCountBufferBytes);
  std::int64_t total = 0;
  while (true) {
    WEIR_ASSIGN_OR_RETURN(const std::size_t bytes, Read(buffer.data(), buffer.size()));
    if (bytes == 0) return total;
    total += static_cast<std::int64_t>(bytes);
  }
}

absl::StatusOr<std::int64_t> ByteSource::Size() {
  WEIR_RETURN_IF_ERROR(Rewind());
  if (gzdirect(file_.get()) != 0) return stored_bytes_;
  WEIR_ASSIGN_OR_RETURN(const std::int64_t bytes, Count());
  WEIR_RETURN_IF_ERROR(Rewind());
  return bytes;
}

absl::Status ByteSource::Rewind() {
  return gzrewind(file_.get()) == 0 ? absl::OkStatus() : StreamError();
}

}  // namespace weir
