#include "store/staleness.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <vector>

namespace weir::store {
namespace {

std::uint64_t NearestRank(const std::vector<std::uint64_t>& sorted, std::uint64_t percent) {
  return sorted[(sorted.size() * percent + 99) / 100 - 1];
}

// What a bucket that holds `value` may report: itself up to kExact, else at most twice as much.
bool Reports(std::uint64_t value, std::uint64_t reported) {
  if (value <= StalenessHistogram::kExact) return reported == value;
  return reported >= value && reported / 2 <= value;
}

StalenessSummary SummaryOf(const std::vector<std::uint64_t>& values) {
  StalenessHistogram histogram;
  for (const std::uint64_t value : values) histogram.Record(value);
  return histogram.Summarize();
}

TEST(StalenessHistogramTest, NothingRecordedIsAllZeros) {
  const StalenessSummary summary = StalenessHistogram().Summarize();
  EXPECT_EQ(summary.count, 0u);
  EXPECT_EQ(summary.p50, 0u);
  EXPECT_EQ(summary.p99, 0u);
  EXPECT_EQ(summary.max, 0u);
  EXPECT_EQ(summary.mean, 0);
}

TEST(StalenessHistogramTest, EdgesOfBuckets) {
  for (const std::uint64_t value :
       {std::uint64_t{0}, std::uint64_t{255}, std::uint64_t{256}, std::uint64_t{257},
        std::uint64_t{511}, std::uint64_t{512}, std::numeric_limits<std::uint64_t>::max()}) {
    const StalenessSummary summary = SummaryOf({value});
    EXPECT_EQ(summary.p50, value);  // the only value is also the maximum
    EXPECT_EQ(summary.max, value);
  }
  EXPECT_EQ(SummaryOf({257, 257, 9000}).p50, 511u);
  EXPECT_EQ(SummaryOf({512, 512, 9000}).p50, 1023u);
}

RC_GTEST_PROP(StalenessHistogramTest, QuantilesAreThoseOfTheSortedValues, ()) {
  const auto percent_small = *rc::gen::inRange(0, 101);
  std::vector<std::uint64_t> values =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<std::uint64_t>>(
          rc::gen::mapcat(rc::gen::inRange(0, 100), [percent_small](int coin) {
            return rc::gen::inRange<std::uint64_t>(0, coin < percent_small ? 300 : 1'000'000);
          })));
  const StalenessSummary summary = SummaryOf(values);
  std::sort(values.begin(), values.end());
  RC_ASSERT(summary.count == values.size());
  RC_ASSERT(summary.max == values.back());
  RC_ASSERT(Reports(NearestRank(values, 50), summary.p50));
  RC_ASSERT(Reports(NearestRank(values, 99), summary.p99));
  double sum = 0;
  for (const std::uint64_t value : values) sum += static_cast<double>(value);
  const double mean = sum / static_cast<double>(values.size());
  RC_ASSERT(std::abs(summary.mean - mean) <= 1e-9 * mean);
}

TEST(StalenessHistogramTest, HistogramsMergeByAddingCounts) {
  StalenessHistogram first;
  StalenessHistogram second;
  for (std::uint64_t value = 0; value < 100; ++value) {
    (value % 2 == 0 ? first : second).Record(value);
  }
  auto counts = first.Counts();
  const auto others = second.Counts();
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += others[i];
  const StalenessSummary merged = StalenessHistogram::Summarize(counts, 99, 49.5);
  EXPECT_EQ(merged.count, 100u);
  EXPECT_EQ(merged.p50, 49u);
  EXPECT_EQ(merged.p99, 98u);
}

TEST(StalenessHistogramTest, NothingIsLostBetweenThreads) {
  StalenessHistogram histogram;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (std::uint64_t value = 0; value < 10'000; ++value) histogram.Record(value);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.Summarize().count, 40'000u);
  EXPECT_EQ(histogram.Summarize().max, 9'999u);
  EXPECT_EQ(histogram.Summarize().mean, 4999.5);
}

}  // namespace
}  // namespace weir::store
