// The bytes of a file, decompressed if it is gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct gzFile_s;

namespace weir {

/// Reads a file from its beginning to its end. Whether it is gzip is told by its first two bytes,
/// never by its name. Errors name the file: NotFound, PermissionDenied and the like from the
/// system, InvalidArgument for what is no regular file, DataLoss for gzip data that are damaged or
/// cut short (bytes and checksum). One user at a time; every call may wait for the disk.
class ByteSource {
 public:
  static absl::StatusOr<ByteSource> Open(const std::string& path);

  /// Reads up to `bytes_max` bytes into `data`; fewer only at the end.
  absl::StatusOr<std::size_t> Read(void* data, std::size_t bytes_max);

  /// How many bytes there are from beginning to end. Of a gzip file only decompressing all of it
  /// tells (its own trailer can lie), which also checks it; no more than a small buffer is used.
  /// The next Read is at the beginning again.
  absl::StatusOr<std::int64_t> Size();

  /// The next Read is at the beginning again.
  absl::Status Rewind();

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };

  ByteSource(std::string path, std::int64_t stored_bytes, gzFile_s* file)
      : path_(std::move(path)), stored_bytes_(stored_bytes), file_(file) {}

  absl::Status StreamError() const;
  absl::StatusOr<std::int64_t> Count();

  std::string path_;
  std::int64_t stored_bytes_;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace weir
