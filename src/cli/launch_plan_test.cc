#include "cli/launch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "cli/local_cluster.h"

namespace weir::cli {
namespace {

using testing::HasSubstr;

TEST(LaunchPlanTest, EveryTaskIsDescribed) {
  const auto cluster = LocalCluster(1, {7001, 7002, 7003});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const std::string text = DescribeLaunch(*cluster, {"./train", "--rate", "0.1"});
  EXPECT_THAT(text, HasSubstr("cluster '" + cluster->ToString() + "'"));
  for (const TaskId& task : cluster->AllTasks()) {
    EXPECT_THAT(text, HasSubstr("\n" + task.ToString() + " at " +
                                cluster->Address(task)->ToString() + "\n"));
    EXPECT_THAT(text, HasSubstr("  TF_CONFIG='" + TfConfig(*cluster, task) +
                                "' \\\n  ./train --rate 0.1\n"));
  }
}

// A line that is pasted must mean what the launcher would have started.
TEST(LaunchPlanTest, AShellReadsTheSameWords) {
  const auto cluster = LocalCluster(0, {7001});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const std::string text =
      DescribeLaunch(*cluster, {"printf", "[%s]", "two words", "it's", "", "$HOME;*"});
  const std::string command = text.substr(text.find("  printf") + 2);
  const std::string line = command.substr(0, command.find('\n'));
  std::FILE* shell = ::popen(line.c_str(), "r");
  ASSERT_NE(shell, nullptr);
  char said[256] = {};
  const std::size_t size = std::fread(said, 1, sizeof(said) - 1, shell);
  EXPECT_EQ(::pclose(shell), 0);
  EXPECT_EQ(std::string(said, size), "[two words][it's][][$HOME;*]") << line;
}

}  // namespace
}  // namespace weir::cli
