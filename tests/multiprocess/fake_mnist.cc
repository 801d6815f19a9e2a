#include "multiprocess/fake_mnist.h"

#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace weir::testing_process {
namespace {

namespace fs = std::filesystem;

// An IDX file of bytes: magic with rank, sizes in big endian, data.
void WriteIdx(const fs::path& path, const std::vector<std::uint32_t>& sizes,
              const std::string& bytes) {
  std::string head = {0, 0, 8, static_cast<char>(sizes.size())};
  for (const std::uint32_t size : sizes)
    for (const int shift : {24, 16, 8, 0}) head += static_cast<char>(size >> shift);
  std::ofstream(path, std::ios::binary) << head << bytes;
}

// `count` random images with labels, in MNIST's clothes.
void WriteImages(const fs::path& folder, const std::string& prefix, std::uint32_t count) {
  std::mt19937 random(count);
  std::string images(count * 28 * 28, '\0'), labels(count, '\0');
  for (char& pixel : images) pixel = static_cast<char>(random());
  for (char& label : labels) label = static_cast<char>(random() % 10);
  WriteIdx(folder / (prefix + "-images-idx3-ubyte"), {count, 28, 28}, images);
  WriteIdx(folder / (prefix + "-labels-idx1-ubyte"), {count}, labels);
}

}  // namespace

void WriteFakeMnist(const fs::path& folder, std::uint32_t train, std::uint32_t test) {
  fs::create_directories(folder);
  WriteImages(folder, "train", train);
  WriteImages(folder, "t10k", test);
}

}  // namespace weir::testing_process
