// How many updates came between the read a gradient was computed from and the moment it was
// applied.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weir::store {

struct StalenessSummary {
  std::uint64_t count = 0;
  std::uint64_t p50 = 0;
  std::uint64_t p99 = 0;
  std::uint64_t max = 0;
  double mean = 0;
};

/// Counts in buckets: exact up to kExact, then powers of two (a bucket reports its upper end).
/// Lock-free.
class StalenessHistogram {
 public:
  static constexpr int kExact = 256;
  static constexpr int kBuckets = kExact + 57;

  /// The largest staleness that falls into `bucket` (0 <= bucket < kBuckets).
  static std::uint64_t UpperEnd(std::size_t bucket);

  void Record(std::uint64_t staleness);
  StalenessSummary Summarize() const;
  /// Raw counts, so that a reader may merge several histograms.
  std::array<std::uint64_t, kBuckets> Counts() const;
  static StalenessSummary Summarize(const std::array<std::uint64_t, kBuckets>& counts,
                                    std::uint64_t max, double mean);

 private:
  std::array<std::atomic<std::uint64_t>, kBuckets> counts_{};
  std::atomic<std::uint64_t> max_{0};
  std::atomic<std::uint64_t> sum_{0};
};

}  // namespace weir::store
