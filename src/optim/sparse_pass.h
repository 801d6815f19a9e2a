// Runs kernels over the rows of a sparse gradient, on several threads when it is worth it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "optim/dense_pass.h"
#include "optim/flush_denormals.h"

namespace weir::optim {

/// `range(begin, end)` over [0, rows) of `width` elements each. Denormals count as zero.
template <typename Kernel>
void RunRowRanges(std::int64_t rows, std::int64_t width, const Kernel& kernel) {
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    const FlushDenormals flush;
    kernel(begin, end);
  };
  if (IsWorthSplitting(rows * width)) {
    RunOnThreads(rows, kGrainElements / std::max<std::int64_t>(width, 1) + 1, run);
  } else {
    run(0, rows);
  }
}

/// Walks all rows of a variable, of which `touched` (rising, each once) have a gradient:
/// `touch(k)` for the row touched[k], `idle(begin, end)` for the rows [begin, end) between.
template <typename Touch, typename Idle>
void RunEveryRow(std::int64_t rows, std::int64_t width, std::span<const std::int64_t> touched,
                 const Touch& touch, const Idle& idle) {
  RunRowRanges(rows, width, [&](std::int64_t begin, std::int64_t end) {
    auto next = std::ranges::lower_bound(touched, begin);
    for (std::int64_t row = begin; row < end;) {
      const std::int64_t stop = next == touched.end() ? end : std::min(*next, end);
      if (row < stop) idle(row, stop);
      if (stop == end) break;
      touch(next - touched.begin());
      row = stop + 1;
      ++next;
    }
  });
}

}  // namespace weir::optim
