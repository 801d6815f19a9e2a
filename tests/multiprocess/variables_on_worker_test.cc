// Without a ps: the variables of an asynchronous job are on one of its workers.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "multiprocess/process.h"

namespace weir::testing_process {
namespace {

namespace fs = std::filesystem;

/// An IDX file of bytes: magic with rank, sizes in big endian, data.
void WriteIdx(const fs::path& path, const std::vector<std::uint32_t>& sizes,
              const std::string& bytes) {
  std::string head = {0, 0, 8, static_cast<char>(sizes.size())};
  for (const std::uint32_t size : sizes)
    for (const int shift : {24, 16, 8, 0}) head += static_cast<char>(size >> shift);
  std::ofstream(path, std::ios::binary) << head << bytes;
}

/// `count` random images with labels, in MNIST's clothes.
void WriteImages(const fs::path& folder, const std::string& prefix, std::uint32_t count) {
  std::mt19937 random(count);
  std::string images(count * 28 * 28, '\0'), labels(count, '\0');
  for (char& pixel : images) pixel = static_cast<char>(random());
  for (char& label : labels) label = static_cast<char>(random() % 10);
  WriteIdx(folder / (prefix + "-images-idx3-ubyte"), {count, 28, 28}, images);
  WriteIdx(folder / (prefix + "-labels-idx1-ubyte"), {count}, labels);
}

TEST(VariablesOnWorkerTest, MnistTrainsWithoutAPs) {
  const fs::path folder = fs::path(testing::TempDir()) / "weir_variables_on_worker";
  fs::create_directories(folder);
  WriteImages(folder, "train", 200);
  WriteImages(folder, "t10k", 50);
  const std::string summary_path = folder / "summary.json";
  Process launcher({Binary("weir"),
                    "launch",
                    "--ps",
                    "0",
                    "--workers",
                    "2",
                    "--summary",
                    summary_path,
                    "--",
                    Binary("mnist"),
                    "--data",
                    folder,
                    "--steps",
                    "300",
                    "--hidden",
                    "8",
                    "--batch",
                    "10",
                    "--variables-on",
                    "/job:worker/task:0/device:CPU:0"});
  EXPECT_EQ(launcher.Wait(std::chrono::seconds(60)), 0) << launcher.Output();
  std::ifstream file(summary_path);
  const auto summary = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  fs::remove_all(folder);
  ASSERT_FALSE(summary.is_discarded()) << launcher.Output();
  EXPECT_EQ(summary.at("global_steps"), 300);
  EXPECT_TRUE(summary.contains("test_accuracy"));
  EXPECT_TRUE(summary.at("ps").empty());
  const auto& owner = summary.at("workers").at(0);
  ASSERT_TRUE(owner.contains("variables")) << summary;
  int trained = 0;
  for (const auto& variable : owner.at("variables")) {
    if (variable.at("name").get<std::string>().rfind("fc", 0) != 0) continue;
    EXPECT_EQ(variable.at("updates"), 300) << variable;
    ++trained;
  }
  EXPECT_EQ(trained, 4) << summary;
  EXPECT_FALSE(summary.at("workers").at(1).contains("variables")) << summary;
}

}  // namespace
}  // namespace weir::testing_process
