// The founding example: 2 ps and 8 workers in the spec, of which three tasks run, driven from a
// fourth process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "multiprocess/process.h"

namespace weir::testing_process {
namespace {

using std::chrono::seconds;

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

TEST(TwoPsTest, TrainsWithThreeOfTenTasks) {
  const std::vector<std::string> addresses = FreeAddresses(10);
  const std::string cluster =
      absl::StrCat("ps=", addresses[0], ",", addresses[1],
                   ";worker=", absl::StrJoin(addresses.begin() + 2, addresses.end(), ","));
  std::vector<std::unique_ptr<Process>> tasks;
  for (const auto& [job, index] :
       {std::pair("ps", "0"), std::pair("ps", "1"), std::pair("worker", "7")}) {
    tasks.push_back(std::make_unique<Process>(std::vector<std::string>{
        WEIR_BIN_DIR "/weir", "serve", "--cluster", cluster, "--job", job, "--task", index}));
  }
  Process client({WEIR_BIN_DIR "/two_ps", "--target", "grpc://" + addresses[9], "--steps", "500"});
  ASSERT_EQ(client.Wait(seconds(60)), 0) << client.Output();
  const std::string output = client.Output();
  EXPECT_THAT(output, testing::HasSubstr("500 steps"));
  for (const char* variable : {"weights_1", "biases_1", "weights_2", "biases_2"}) {
    EXPECT_GE(Count(output, variable), 2) << output;
  }
  Process status({WEIR_BIN_DIR "/weir", "status", cluster, "--json"});
  ASSERT_EQ(status.Wait(seconds(30)), 1) << "seven workers do not answer";
  EXPECT_EQ(Count(status.Output(), "\"version\": 500"), 5)
      << status.Output();  // four variables and global_step
  for (const auto& task : tasks) {
    task->Signal(SIGTERM);
    EXPECT_EQ(task->Wait(seconds(10)), 0) << task->Output();
  }
}

}  // namespace
}  // namespace weir::testing_process
