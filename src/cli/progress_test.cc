#include "cli/progress.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weir::cli {
namespace {

using std::chrono::seconds;

TEST(ProgressTest, ALineHasWhatIsKnown) {
  Progress progress{.step = 1200,
                    .step_limit = 6000,
                    .steps_per_second = 800,
                    .loss = 0.25,
                    .staleness = StalenessPoll::Answer{.p50 = 1, .max = 4}};
  EXPECT_EQ(FormatProgress(progress),
            "step 1200 of 6000  800 steps/s  loss 0.2500  staleness p50 1 max 4  6 s left");
  EXPECT_EQ(FormatProgress({.step = 7, .loss = std::nan("")}), "step 7  0 steps/s  loss nan");
}

TEST(ProgressTest, IsOverAtTheLimit) {
  EXPECT_FALSE((Progress{.step = 9, .step_limit = 10}.is_over()));
  EXPECT_TRUE((Progress{.step = 10, .step_limit = 10}.is_over()));
  EXPECT_FALSE(Progress{.step = 10}.is_over());
}

TEST(RateMeterTest, CountsFromOneLookToTheNext) {
  const RateMeter::TimePoint start{};
  RateMeter meter(start);
  EXPECT_DOUBLE_EQ(meter.Look(100, start + seconds(2)), 50);
  EXPECT_DOUBLE_EQ(meter.Look(400, start + seconds(3)), 300);
  EXPECT_DOUBLE_EQ(meter.Look(400, start + seconds(3)), 0);
  EXPECT_DOUBLE_EQ(meter.Look(10, start + seconds(4)), 0);  // the ps began anew
}

}  // namespace
}  // namespace weir::cli
