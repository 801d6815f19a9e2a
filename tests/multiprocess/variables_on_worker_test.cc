// Without a ps: the variables of an asynchronous job are on one of its workers.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "multiprocess/fake_mnist.h"
#include "multiprocess/process.h"

namespace weir::testing_process {
namespace {

namespace fs = std::filesystem;

TEST(VariablesOnWorkerTest, MnistTrainsWithoutAPs) {
  const fs::path folder = fs::path(testing::TempDir()) / "weir_variables_on_worker";
  fs::create_directories(folder);
  WriteFakeMnist(folder, 200, 50);
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
