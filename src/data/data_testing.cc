#include "data/data_testing.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace weir {

TestFolder::TestFolder() : path_(testing::TempDir() + "weir_data_XXXXXX") {
  EXPECT_NE(mkdtemp(path_.data()), nullptr) << path_;
}

TestFolder::~TestFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
  EXPECT_FALSE(error) << path_ << ": " << error.message();
}

std::string TestFolder::Write(const std::string& name, const std::string& bytes) const {
  std::ofstream file(Path(name), std::ios::binary);
  file << bytes;
  EXPECT_TRUE(file.flush().good()) << Path(name);
  return Path(name);
}

std::string TestFolder::WriteGzip(const std::string& name, const std::string& bytes) const {
  gzFile file = gzopen(Path(name).c_str(), "wb");
  EXPECT_NE(file, nullptr) << Path(name);
  const auto size = static_cast<unsigned>(bytes.size());
  EXPECT_EQ(gzwrite(file, bytes.data(), size), static_cast<int>(size));
  EXPECT_EQ(gzclose_w(file), Z_OK);
  return Path(name);
}

std::string TestdataPath(const std::string& name) {
  return WEIR_DATA_TESTDATA "/" + name;
}

std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string IdxBytes(const std::vector<std::uint32_t>& sizes, const std::string& elements,
                     std::uint8_t type) {
  std::string bytes = {0, 0, static_cast<char>(type), static_cast<char>(sizes.size())};
  for (const std::uint32_t size : sizes) {
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(size >> shift & 0xff);
  }
  return bytes + elements;
}

std::string SomeBytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 37 % 251);
  return bytes;
}

}  // namespace weir
