// Runs a kernel over all elements of a variable: in blocks, on several threads when it is worth it.
#pragma once

#include <cstdint>
#include <functional>

#include "optim/flush_denormals.h"
#include "store/blocks.h"

namespace weir::optim {

/// From here on a pass is split, if libtorch is configured for more than one thread: below, waking
/// another thread costs more than it brings.
inline constexpr std::int64_t kParallelElements = 1024 * 1024;

/// True when a pass over `elements` is to be split.
bool IsWorthSplitting(std::int64_t elements);

using Range = std::function<void(std::int64_t begin, std::int64_t end)>;

/// Calls `range(begin, end)` for parts of at least `grain` that make up [0, count), on libtorch's
/// threads. Returns when all are done.
void RunOnThreads(std::int64_t count, std::int64_t grain, const Range& range);

/// The part of a pass that one thread gets at least.
inline constexpr std::int64_t kGrainElements = 4 * store::kBlockElements;

/// `kernel(begin, end)` over [0, elements), block by block with `hook` in between. Denormals
/// count as zero.
template <typename Kernel>
void RunPass(std::int64_t elements, const store::BlockHook& hook, const Kernel& kernel) {
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    const FlushDenormals flush;
    store::ForEachBlock(begin, end, store::Pass::kUpdate, hook, kernel);
  };
  IsWorthSplitting(elements) ? RunOnThreads(elements, kGrainElements, run) : run(0, elements);
}

}  // namespace weir::optim
