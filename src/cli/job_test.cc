#include "weir/job.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(ExitTest, PrintsWhatWentWrongAndNothingElse) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(Exit(absl::OkStatus()), 0);
  EXPECT_EQ(Exit(absl::OutOfRangeError("the step limit is reached")), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  EXPECT_EQ(Exit(absl::NotFoundError("no such node")), 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "NOT_FOUND: no such node\n");
}

TEST(ExitTest, HelpIsPrintedAndStartsNothing) {
  char program[] = "program", help[] = "--help";
  char* argv[] = {program, help, nullptr};
  int argc = 2;
  const auto job = Job::FromCommandLine(&argc, argv, {.steps = 77});
  ASSERT_FALSE(job.ok());
  testing::internal::CaptureStdout();
  EXPECT_EQ(Exit(job.status()), 0);
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("--cluster"), std::string::npos);
  EXPECT_NE(text.find("77"), std::string::npos);
}

}  // namespace
}  // namespace weir
