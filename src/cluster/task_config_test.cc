#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "absl/container/flat_hash_map.h"
#include "cluster/cluster_spec.h"
#include "cluster/cluster_testing.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ErrorOf(const std::string& json) {
  const auto config = TaskConfig::ParseTfConfig(json);
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument) << json;
  return MessageOf(config.status());
}

TEST(TaskIdTest, PrintsForMessagesAndForDevices) {
  const TaskId task{"ps", 3};
  EXPECT_EQ(task.ToString(), "ps:3");
  EXPECT_EQ(task.DevicePrefix(), "/job:ps/task:3");
}

TEST(TaskIdTest, IsOrderedAndHashed) {
  EXPECT_LT((TaskId{"ps", 9}), (TaskId{"worker", 0}));
  EXPECT_LT((TaskId{"ps", 9}), (TaskId{"ps", 10}));
  absl::flat_hash_map<TaskId, int> map;
  map[{"ps", 0}] = 1;
  EXPECT_TRUE(map.contains({"ps", 0}));
  EXPECT_FALSE(map.contains({"ps", 1}));
}

TEST(TaskConfigTest, ReadsTfConfigAndLeavesOtherKeysAlone) {
  const auto config = TaskConfig::ParseTfConfig(R"({
      "cluster": {"ps": ["a:1"], "worker": {"0": "b:2", "1": "c:3"}},
      "task": {"type": "worker", "index": 1, "trial": "7"},
      "environment": "cloud", "rpc_layer": "grpc", "job": {"region": "x"}})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster.ToString(), "ps=a:1;worker=b:2,c:3");
  EXPECT_EQ(config->task, (TaskId{"worker", 1}));
}

TEST(TaskConfigTest, ReadsTheIndexAsTextToo) {
  const auto config = TaskConfig::ParseTfConfig(
      R"({"cluster": {"ps": ["a:1", "a:2"]}, "task": {"type": "ps", "index": "1"}})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->task, (TaskId{"ps", 1}));
}

TEST(TaskConfigTest, TaskTypeThatIsNoJobIsRefusedWithTheJobs) {  // C1-05
  EXPECT_THAT(ErrorOf(ReadTestdata("C1-05a.json")),
              AllOf(HasSubstr("chief:0"), HasSubstr("its jobs are worker")));
}

TEST(TaskConfigTest, TaskIndexOutOfRangeIsRefusedWithTheRange) {  // C1-05
  EXPECT_THAT(ErrorOf(ReadTestdata("C1-05b.json")),
              AllOf(HasSubstr("worker:1"), HasSubstr("job worker has tasks 0..0")));
}

TEST(TaskConfigTest, BothEmptyAddressesAreReported) {  // C1-06
  EXPECT_EQ(ErrorOf(ReadTestdata("C1-06.json")), "chief[0]: empty address; ps[1]: empty address");
}

TEST(TaskConfigTest, OneAddressForTwoTasksIsReported) {  // C1-07
  EXPECT_EQ(ErrorOf(ReadTestdata("C1-07.json")),
            "address 127.0.0.1:7000 is given to ps:0 and ps:1");
}

TEST(TaskConfigTest, ErrorsOfClusterAndTaskComeTogether) {
  EXPECT_EQ(ErrorOf(R"({"cluster": {"ps": ["", "a:1"]}, "task": {"type": "ps", "index": 2}})"),
            "ps[0]: empty address; there is no task ps:2 in the cluster: job ps has tasks 0..1");
  EXPECT_EQ(ErrorOf(R"({"cluster": {"ps": [""]}, "task": {"type": 7, "index": -1}})"),
            "ps[0]: empty address; task.type: expected the name of a job, found number; "
            "task.index: expected a number from 0");
  EXPECT_EQ(ErrorOf(R"({"environment": "cloud"})"),
            "cluster: expected an object of jobs, found null; "
            "task: expected an object with type and index, found null");
}

TEST(TaskConfigTest, ABrokenTaskIsNotAlsoReportedAsMissing) {
  EXPECT_EQ(ErrorOf(R"({"cluster": {"ps": [5]}, "task": {"type": "ps", "index": 0}})"),
            "ps[0]: expected an address, found number");
}

TEST(TaskConfigTest, IndicesThatAreNoneAreRefused) {
  for (const char* index : {"-1", "1.0", "1e0", "true", "null", "\"x\"", "\"\"", "[0]",
                            "4294967296", "18446744073709551616"}) {
    EXPECT_THAT(ErrorOf(std::string(R"({"cluster": {"ps": ["a:1", "a:2"]},)") +
                        R"("task": {"type": "ps", "index": )" + index + "}}"),
                HasSubstr("task.index: expected a number from 0"))
        << index;
  }
}

TEST(TaskConfigTest, CreateChecksTheTask) {
  const ClusterSpec spec = ClusterSpec::ParseFlag("ps=a:1").value();
  const auto config = TaskConfig::Create(spec, {"ps", 0});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster, spec);
  const auto absent = TaskConfig::Create(spec, {"worker", 0});
  EXPECT_EQ(absent.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(absent.status()), AllOf(HasSubstr("worker:0"), HasSubstr("ps")));
}

RC_GTEST_PROP(TaskConfigPropertyTest, AMutatedTextParsesOrIsRefused, ()) {
  std::string text = ReadTestdata("C1-05b.json");
  const auto edits = *rc::gen::container<std::vector<std::pair<std::size_t, char>>>(
      rc::gen::arbitrary<std::pair<std::size_t, char>>());
  for (const auto& [position, byte] : edits) text[position % text.size()] = byte;
  const auto config = TaskConfig::ParseTfConfig(text.substr(0, text.size() - edits.size() / 2));
  RC_ASSERT(config.ok() || config.status().code() == absl::StatusCode::kInvalidArgument);
}

TEST(TaskConfigTest, DeepNestingIsRefusedWithoutHarm) {
  EXPECT_THAT(ErrorOf(std::string(200000, '[')), HasSubstr("not JSON"));
  const std::string open = "{\"cluster\":" + std::string(200000, '[');
  EXPECT_THAT(ErrorOf(open + std::string(200000, ']') + "}"), HasSubstr("found array"));
}

}  // namespace
}  // namespace weir
