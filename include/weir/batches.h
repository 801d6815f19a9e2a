// Minibatches of a data set that is in memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace weir {

/// `auto [images, labels] = batches.Next();`
struct Batch {
  at::Tensor images;  // float {batch, pixels}, each pixel divided by 255
  at::Tensor labels;  // int64 {batch}
};

/// The uint8 `images` {n, ...} as float rows {n, pixels} divided by 255: what batches hold, for a
/// whole set at once. REQUIRES: a contiguous CPU tensor.
at::Tensor ScaledRows(const at::Tensor& images);

/// Draws minibatches from shuffled epochs: each example comes once before any comes again, in an
/// order that is new in each epoch. A batch may reach from one epoch into the next, so every batch
/// has the same size. The order depends on (seed, worker) alone, on any machine; workers with the
/// same seed go through the whole set in different orders.
///
/// Shares the data set with whoever else holds it and never writes to it; every batch is memory of
/// its own. For one thread at a time; nothing blocks.
class RandomBatches {
 public:
  /// `images` uint8 {n, ...} and `labels` uint8 {n}, on the CPU; InvalidArgument for anything else,
  /// for n = 0 and for a batch below 1. The batch may be larger than the set.
  static absl::StatusOr<RandomBatches> Create(at::Tensor images, at::Tensor labels,
                                              std::int64_t batch, std::uint64_t seed, int worker);

  /// The next batch. Throws c10::Error only when there is no memory for it.
  Batch Next();

 private:
  RandomBatches(at::Tensor images, at::Tensor labels, std::int64_t batch, std::mt19937_64 random);

  std::int64_t DrawExample();

  at::Tensor images_;
  at::Tensor labels_;
  std::int64_t batch_;
  std::mt19937_64 random_;
  std::vector<std::int64_t> order_;  // a permutation; the examples before next_ are drawn already
  std::size_t next_ = 0;
};

}  // namespace weir
