#include "store/staleness.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace weir::store {
namespace {

// The first value that shares its bucket has kFirstWidth bits: buckets after the exact ones hold
// all values of 9, 10, ..., 64 bits (256 itself is still exact).
constexpr int kFirstWidth = 9;

std::size_t BucketOf(std::uint64_t staleness) {
  constexpr std::uint64_t exact = StalenessHistogram::kExact;
  if (staleness <= exact) return static_cast<std::size_t>(staleness);
  return exact + 1 + static_cast<std::size_t>(std::bit_width(staleness) - kFirstWidth);
}

// Nearest rank: the smallest value that at least `percent` % of all do not exceed.
std::uint64_t Quantile(const std::array<std::uint64_t, StalenessHistogram::kBuckets>& counts,
                       std::uint64_t total, std::uint64_t percent) {
  const std::uint64_t rank = (total * percent + 99) / 100;
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < counts.size(); ++bucket) {
    seen += counts[bucket];
    if (seen >= rank && seen > 0) return StalenessHistogram::UpperEnd(bucket);
  }
  return 0;
}

void RaiseTo(std::atomic<std::uint64_t>& max, std::uint64_t value) {
  std::uint64_t seen = max.load(std::memory_order_relaxed);
  while (seen < value && !max.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

std::uint64_t StalenessHistogram::UpperEnd(std::size_t bucket) {
  constexpr std::size_t exact = kExact;
  if (bucket <= exact) return bucket;
  const std::size_t width = bucket - exact - 1 + kFirstWidth;
  return width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
}

void StalenessHistogram::Record(std::uint64_t staleness) {
  RaiseTo(max_, staleness);
  sum_.fetch_add(staleness, std::memory_order_relaxed);
  counts_[BucketOf(staleness)].fetch_add(1, std::memory_order_relaxed);
}

std::array<std::uint64_t, StalenessHistogram::kBuckets> StalenessHistogram::Counts() const {
  std::array<std::uint64_t, kBuckets> counts{};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i] = counts_[i].load(std::memory_order_relaxed);
  }
  return counts;
}

StalenessSummary StalenessHistogram::Summarize() const {
  const auto counts = Counts();
  std::uint64_t total = 0;
  for (const std::uint64_t count : counts) total += count;
  const auto sum = static_cast<double>(sum_.load(std::memory_order_relaxed));
  return Summarize(counts, max_.load(std::memory_order_relaxed),
                   total == 0 ? 0 : sum / static_cast<double>(total));
}

StalenessSummary StalenessHistogram::Summarize(const std::array<std::uint64_t, kBuckets>& counts,
                                               std::uint64_t max, double mean) {
  StalenessSummary summary{.count = 0, .p50 = 0, .p99 = 0, .max = max, .mean = mean};
  for (const std::uint64_t count : counts) summary.count += count;
  summary.p50 = std::min(max, Quantile(counts, summary.count, 50));
  summary.p99 = std::min(max, Quantile(counts, summary.count, 99));
  return summary;
}

}  // namespace weir::store
