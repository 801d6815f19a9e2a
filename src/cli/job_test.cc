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

}  // namespace
}  // namespace weir
