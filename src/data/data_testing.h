// What the tests of this folder share: small IDX files in a folder of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace weir {

/// A fresh folder under testing::TempDir(), removed with all that is in it.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string Path(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  /// Both return the path of the new file.
  std::string Write(const std::string& name, const std::string& bytes) const;
  std::string WriteGzip(const std::string& name, const std::string& bytes) const;

 private:
  std::string path_;
};

/// The path of a file of testdata/.
std::string TestdataPath(const std::string& name);
std::string ReadBytes(const std::string& path);

/// magic, sizes and elements as an IDX file has them; `elements` need not fit the sizes.
std::string IdxBytes(const std::vector<std::uint32_t>& sizes, const std::string& elements,
                     std::uint8_t type = 0x08);

/// `count` bytes that differ from place to place.
std::string SomeBytes(std::size_t count);

/// absl's view is not std's, which matchers want.
inline std::string MessageOf(const absl::Status& status) {
  return std::string(status.message());
}

}  // namespace weir
