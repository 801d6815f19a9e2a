// The examples run as their comments say, short.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "multiprocess/fake_mnist.h"
#include "multiprocess/process.h"

namespace weir::testing_process {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using testing::ContainsRegex;

class ExamplesTest : public testing::Test {
 protected:
  ExamplesTest()
      : folder_(
            fs::path(testing::TempDir()) /
            absl::StrCat("weir_", testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(folder_);
  }
  ~ExamplesTest() override { fs::remove_all(folder_); }

  /// Runs `program` as a job and returns its summary.
  nlohmann::json Launch(int ps, int workers, std::vector<std::string> program) {
    const std::string summary = folder_ / "summary.json";
    std::vector<std::string> command = {Binary("weir"),     "launch",    "--ps",
                                        std::to_string(ps), "--workers", std::to_string(workers),
                                        "--summary",        summary,     "--"};
    program.front() = Binary(program.front());
    command.insert(command.end(), program.begin(), program.end());
    Process launcher(command);
    EXPECT_EQ(launcher.Wait(seconds(60)), 0) << launcher.Output();
    output_ = launcher.Output();
    std::ifstream file(summary);
    return nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  }

  const fs::path folder_;
  std::string output_;
};

TEST_F(ExamplesTest, EmbeddingsLearn) {
  const auto summary = Launch(2, 2,
                              {"embeddings", "--users", "200", "--items", "100", "--ratings",
                               "20000", "--steps", "600", "--batch", "256"});
  ASSERT_FALSE(summary.is_discarded()) << output_;
  EXPECT_EQ(summary.at("global_steps"), 600);
  // A guess of the mean alone is off by the ratings' spread, about 1.
  EXPECT_LT(summary.at("test_loss").get<double>(), 0.9) << output_;
  EXPECT_GT(summary.at("rows_per_second").get<double>(), 0) << output_;
}

TEST_F(ExamplesTest, EmbeddingsTrainAlone) {
  Process alone({Binary("embeddings"), "--users", "200", "--items", "100", "--ratings", "20000",
                 "--batch", "256", "--single", "100"});
  EXPECT_EQ(alone.Wait(seconds(60)), 0);
  EXPECT_THAT(alone.Output(), ContainsRegex("test loss 0\\.[0-9]+")) << alone.Output();
}

TEST_F(ExamplesTest, TowersTrainOnEveryWorkerInOneGraph) {
  const auto summary =
      Launch(1, 2, {"in_graph_towers", "--hidden", "32", "--batch", "64", "--steps", "100"});
  ASSERT_FALSE(summary.is_discarded()) << output_;
  EXPECT_EQ(summary.at("global_steps"), 100);
  EXPECT_THAT(output_, ContainsRegex("2 towers: loss [0-9.]+ -> [0-9.]+"));
  // sin of a normal variable has a variance of (1 - e^-2) / 2, which is the loss of guessing 0.
  EXPECT_LT(summary.at("last_loss").get<double>(), 0.43) << output_;
}

/// "N of 50 test images right" in what a program has said.
std::string RightImages(const std::string& output) {
  const std::size_t end = output.find(" of 50 test images right");
  if (end == std::string::npos) return "";
  const std::size_t begin = output.find_last_not_of("0123456789", end - 1) + 1;
  return output.substr(begin, end - begin);
}

TEST_F(ExamplesTest, ACustomModulesWeightsGiveThePlainModuleTheSameAnswers) {
  WriteFakeMnist(folder_, 200, 50);
  const std::string weights = folder_ / "weights.safetensors";
  const auto summary = Launch(
      1, 2,
      {"custom_module", "--data", folder_, "--steps", "30", "--batch", "20", "--save", weights});
  ASSERT_FALSE(summary.is_discarded()) << output_;
  EXPECT_EQ(summary.at("global_steps"), 30);
  Process plain({Binary("custom_module"), "--data", folder_, "--evaluate", weights});
  ASSERT_EQ(plain.Wait(seconds(60)), 0) << plain.Output();
  EXPECT_NE(RightImages(output_), "") << output_;
  EXPECT_EQ(RightImages(output_), RightImages(plain.Output())) << output_ << plain.Output();
}

}  // namespace
}  // namespace weir::testing_process
