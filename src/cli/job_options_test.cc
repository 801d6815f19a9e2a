#include "cli/job_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace weir::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// argc and argv as main gets them.
class Arguments {
 public:
  explicit Arguments(std::vector<std::string> strings) : strings_(std::move(strings)) {
    for (std::string& string : strings_) pointers_.push_back(string.data());
    pointers_.push_back(nullptr);
    argc = static_cast<int>(strings_.size());
  }
  char** argv() { return pointers_.data(); }
  std::vector<std::string> left() const { return {pointers_.begin(), pointers_.begin() + argc}; }
  int argc = 0;

 private:
  std::vector<std::string> strings_;
  std::vector<char*> pointers_;
};

TEST(JobOptionsTest, TakesItsFlagsAndLeavesTheProgramsOwn) {
  Arguments arguments({"mnist", "--hidden", "100", "--steps", "3000", "--task=1", "--job", "worker",
                       "--save", "w"});
  const auto options = TakeJobFlags(&arguments.argc, arguments.argv());
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->steps, 3000);
  EXPECT_EQ(options->task, 1);
  EXPECT_EQ(options->job, "worker");
  EXPECT_THAT(arguments.left(), ElementsAre("mnist", "--hidden", "100", "--save", "w"));
}

TEST(JobOptionsTest, AProgramHasDefaultsOfItsOwn) {
  JobOptions defaults;
  defaults.steps = 200;
  Arguments without({"mnist"});
  EXPECT_EQ(TakeJobFlags(&without.argc, without.argv(), defaults)->steps, 200);
  Arguments with({"mnist", "--steps", "7"});
  EXPECT_EQ(TakeJobFlags(&with.argc, with.argv(), defaults)->steps, 7);
}

TEST(JobOptionsTest, ABadValueIsRefused) {
  Arguments arguments({"mnist", "--steps", "many"});
  EXPECT_EQ(TakeJobFlags(&arguments.argc, arguments.argv()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(JobOptionsTest, DeadlinesAndPortsHaveBounds) {
  for (const char* flag :
       {"--start-timeout", "--connect-timeout", "--step-timeout", "--stop-timeout"}) {
    for (const char* value : {"1e10", "inf", "nan", "0", "-1", "1e-9", "soon"}) {
      Arguments arguments({"mnist", flag, value});
      EXPECT_FALSE(TakeJobFlags(&arguments.argc, arguments.argv()).ok()) << flag << " " << value;
    }
    for (const char* value : {"0.001", "1e6", "2.5"}) {
      Arguments arguments({"mnist", flag, value});
      EXPECT_TRUE(TakeJobFlags(&arguments.argc, arguments.argv()).ok()) << flag << " " << value;
    }
  }
  for (const char* port : {"-1", "65536", "http"}) {
    Arguments arguments({"mnist", "--data-port", port});
    EXPECT_FALSE(TakeJobFlags(&arguments.argc, arguments.argv()).ok()) << port;
  }
}

TEST(RoleTest, FlagsComeBeforeTfConfig) {
  JobOptions options;
  options.cluster = "ps=127.0.0.1:7000;worker=127.0.0.1:7001";
  options.job = "ps";
  options.task = 0;
  const char* tf_config =
      R"({"cluster":{"worker":["127.0.0.1:9000"]},"task":{"type":"worker","index":0}})";
  EXPECT_EQ(FindRole(options, tf_config)->config.task, (TaskId{"ps", 0}));
  EXPECT_EQ(FindRole({}, tf_config)->source, "TF_CONFIG");
  EXPECT_EQ(FindRole({}, nullptr)->config.task, (TaskId{"worker", 0}));
}

// C9-09: each of four processes would be worker 0 of 1, all would train and write the same files.
TEST(RoleTest, ProcessesThatMpiStartedAreNotEachAClusterOfItsOwn) {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const auto together = FindStartedTogether(
        [&](const char* name) { return std::string(name) == variable ? "4" : nullptr; });
    const auto role = FindRole({}, nullptr, together);
    EXPECT_EQ(role.status().code(), absl::StatusCode::kFailedPrecondition);
    for (const char* part : {variable, "4 processes", "1 of 1", "--cluster", "TF_CONFIG"})
      EXPECT_THAT(std::string(role.status().message()), HasSubstr(part));
    JobOptions options;
    options.cluster = "worker=127.0.0.1:7000";
    options.job = "worker";
    options.task = 0;
    EXPECT_TRUE(FindRole(options, nullptr, together).ok());
  }
  for (const char* value : {"1", "", "many"}) {
    const auto alone = FindStartedTogether([&](const char*) { return value; });
    EXPECT_TRUE(FindRole({}, nullptr, alone).ok()) << value;
  }
}

TEST(RoleTest, HalfARoleIsRefused) {
  JobOptions options;
  options.cluster = "ps=127.0.0.1:7000";
  EXPECT_THAT(std::string(FindRole(options, nullptr).status().message()),
              HasSubstr("--job and --task"));
  JobOptions no_cluster;
  no_cluster.job = "ps";
  EXPECT_FALSE(FindRole(no_cluster, nullptr).ok());
}

}  // namespace
}  // namespace weir::cli
