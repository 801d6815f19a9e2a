#include "base/line_limiter.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(LineLimiterTest, OneLineAPeriodWhichCountsTheOthers) {
  using std::chrono::milliseconds;
  LineLimiter limiter(milliseconds(100));
  const TimePoint start;
  EXPECT_EQ(limiter.Admit(start), 0u);
  EXPECT_EQ(limiter.Admit(start + milliseconds(1)), std::nullopt);
  EXPECT_EQ(limiter.Admit(start + milliseconds(99)), std::nullopt);
  EXPECT_EQ(limiter.Admit(start + milliseconds(100)), 2u);
  EXPECT_EQ(limiter.Admit(start + milliseconds(500)), 0u);
}

}  // namespace
}  // namespace weir
