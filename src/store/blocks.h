// Long passes over a variable are made in blocks, so that a test can stop one half-way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

namespace weir::store {

/// 256 KB of float32: large enough that looking at the hook between two blocks costs nothing, small
/// enough that the block of each operand stays in a core's cache.
inline constexpr std::int64_t kBlockElements = 64 * 1024;

/// What kind of pass a hook is called from.
enum class Pass { kUpdate, kRead };

/// Called between two blocks of a pass with the index of the first element not yet touched, on the
/// thread that makes the pass and under whatever lock the pass holds. For tests: it may block,
/// which is how a test holds an update or a read half-way.
using BlockHook = std::function<void(Pass pass, std::int64_t element)>;

/// Runs `block(begin, end)` over [begin, end) of a pass, in order, calling `hook` in between.
template <typename Function>
void ForEachBlock(std::int64_t begin, std::int64_t end, Pass pass, const BlockHook& hook,
                  Function&& block) {
  while (begin < end) {
    const std::int64_t next = std::min(end, begin + kBlockElements);
    block(begin, next);
    if (hook && next < end) [[unlikely]] {
      hook(pass, next);
    }
    begin = next;
  }
}

}  // namespace weir::store
