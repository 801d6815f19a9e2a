#include "base/log.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace weir {
namespace {

using std::chrono::seconds;

class LoggerTest : public testing::Test {
 protected:
  std::shared_ptr<Logger> NewLogger(LogLevel level) {
    return Logger::ToSink(level, [this](LogLevel line_level, std::string_view text) {
      lines_.emplace_back(line_level, text);
    });
  }

  std::vector<std::pair<LogLevel, std::string>> lines_;
};

TEST_F(LoggerTest, PutsPrefixesBeforeTheText) {
  const auto logger = NewLogger(LogLevel::kInfo)->WithPrefix("[worker:1] ");
  logger->Info("ready {} %s");  // no format string
  logger->WithPrefix("step 7: ")->Error("lost");
  ASSERT_EQ(lines_.size(), 2U);
  EXPECT_EQ(lines_[0], std::make_pair(LogLevel::kInfo, std::string("[worker:1] ready {} %s")));
  EXPECT_EQ(lines_[1], std::make_pair(LogLevel::kError, std::string("[worker:1] step 7: lost")));
}

TEST_F(LoggerTest, DropsWhatIsBelowItsLevel) {
  const auto logger = NewLogger(LogLevel::kWarning);
  logger->Debug("a");
  logger->Info("b");
  logger->Warning("c");
  logger->Log(LogLevel::kOff, "d");
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_EQ(lines_[0].second, "c");
  EXPECT_FALSE(logger->IsEnabled(LogLevel::kInfo));
  EXPECT_TRUE(logger->IsEnabled(LogLevel::kWarning));
}

TEST_F(LoggerTest, NullWritesNothing) {
  EXPECT_FALSE(Logger::Null()->IsEnabled(LogLevel::kError));
  Logger::Null()->Error("x");
}

TEST_F(LoggerTest, StderrLinesCarryTimeLevelAndPrefix) {
  testing::internal::CaptureStderr();
  Logger::ToStderr(LogLevel::kInfo)->WithPrefix("[ps:0] ")->Warning("slow");
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(line.substr(line.find(' ')), " W [ps:0] slow\n");
  EXPECT_EQ(line.find(' '), std::string("14:03:22.104").size());
}

const TimePoint kStart = TimePoint(seconds(100));

TEST(LogLimiterTest, WritesOnceThenACount) {  // C9-01
  LogLimiter limiter(seconds(10));
  EXPECT_EQ(limiter.Admit("late", "late gradient of step 1", kStart), "late gradient of step 1");
  EXPECT_EQ(limiter.Admit("late", "late gradient of step 2", kStart + seconds(1)), std::nullopt);
  EXPECT_EQ(limiter.Admit("late", "late gradient of step 3", kStart + seconds(9)), std::nullopt);
  EXPECT_EQ(limiter.Admit("late", "late gradient of step 4", kStart + seconds(10)),
            "late gradient of step 4 (and 2 more like it before)");
  EXPECT_EQ(limiter.Admit("late", "late gradient of step 5", kStart + seconds(20)),
            "late gradient of step 5");
}

TEST(LogLimiterTest, KeysAreIndependent) {
  LogLimiter limiter(seconds(10));
  EXPECT_TRUE(limiter.Admit("a", "a", kStart));
  EXPECT_TRUE(limiter.Admit("b", "b", kStart));
  EXPECT_FALSE(limiter.Admit("a", "a", kStart));
}

TEST(LogLimiterTest, ForgetsTheOldestKeyBeyondItsBound) {
  LogLimiter limiter(seconds(3600));
  for (std::size_t i = 0; i <= LogLimiter::kKeysMax; ++i) {
    EXPECT_TRUE(limiter.Admit(std::to_string(i), "x", kStart + Duration(i)));
  }
  EXPECT_FALSE(limiter.Admit("1", "x", kStart + seconds(1)));
  EXPECT_TRUE(limiter.Admit("0", "x", kStart + seconds(1)));
}

}  // namespace
}  // namespace weir
