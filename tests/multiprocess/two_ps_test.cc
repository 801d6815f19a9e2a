// The founding example: 2 ps and 8 workers in the spec, of which three tasks run, driven from a
// fourth process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "multiprocess/process.h"

namespace weir::testing_process {
namespace {

using std::chrono::seconds;

/// Tensors that cross devices in one step, as the plan's dump lists them: "weights_1/read  /job:ps
/// .. -> /job:worker ..".
std::vector<std::string> CrossingTensors(const std::string& dump) {
  std::istringstream lines(dump.substr(dump.find("crossing edges:")));
  std::vector<std::string> crossings;
  for (std::string line; std::getline(lines, line) && line != "in one step:";) {
    const bool is_tensor = line.size() > 5 && line.compare(line.size() - 5, 5, "bytes") == 0;
    if (!is_tensor) continue;  // the heading, or a control edge
    const std::size_t name = line.find(": ") + 2;
    crossings.push_back(line.substr(name, line.find("  ", line.find(" -> ")) - name));
  }
  return crossings;
}

std::string Crossing(const std::string& tensor, const std::string& from, const std::string& to) {
  const auto device = [](const std::string& task) {
    return absl::StrCat("/job:", task.substr(0, task.find(':')),
                        "/replica:0/task:", task.substr(task.find(':') + 1), "/device:CPU:0");
  };
  return absl::StrCat(tensor, "  ", device(from), " -> ", device(to));
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
        Binary("weir"), "serve", "--cluster", cluster, "--job", job, "--task", index}));
  }
  Process client({Binary("two_ps"), "--target", "grpc://" + addresses[9], "--steps", "500"});
  ASSERT_EQ(client.Wait(seconds(60)), 0) << client.Output();
  const std::string output = client.Output();
  EXPECT_THAT(output, testing::HasSubstr("500 steps"));
  // Each weight crosses once, and each gradient once; nothing else does.
  std::vector<std::string> expected;
  for (const auto& [variable, ps] :
       {std::pair("weights_1", "ps:0"), std::pair("biases_1", "ps:0"),
        std::pair("weights_2", "ps:1"), std::pair("biases_2", "ps:1")}) {
    expected.push_back(Crossing(absl::StrCat(variable, "/read"), ps, "worker:7"));
    expected.push_back(Crossing(absl::StrCat(variable, "/gradient"), "worker:7", ps));
    EXPECT_EQ(Count(output, absl::StrCat("Send(", variable, "/read)")), 1) << output;
    EXPECT_EQ(Count(output, absl::StrCat("Send(", variable, "/gradient)")), 1) << output;
  }
  EXPECT_THAT(CrossingTensors(output), testing::UnorderedElementsAreArray(expected)) << output;
  Process status({Binary("weir"), "status", cluster, "--json"});
  ASSERT_EQ(status.Wait(seconds(30)), 1) << "seven workers do not answer";
  EXPECT_EQ(Count(status.Output(), "\"version\": 500"), 5)
      << status.Output();  // four variables and global_step
  // And so it was: 313,600 + 400 bytes of layer 1 a step, each way.
  const auto json = nlohmann::json::parse(status.Output(), nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(json.is_discarded()) << status.Output();
  const auto& ps = json.at("tasks").at(0);
  ASSERT_EQ(ps.at("task"), "ps:0");
  for (const char* bytes : {"bytes_in", "bytes_out"}) {
    EXPECT_GE(ps.at(bytes), 500 * 314'000) << bytes;
    EXPECT_LE(ps.at(bytes), 505 * 314'000) << bytes;
  }
  for (const auto& task : tasks) {
    task->Signal(SIGTERM);
    EXPECT_EQ(task->Wait(seconds(10)), 0) << task->Output();
  }
}

}  // namespace
}  // namespace weir::testing_process
