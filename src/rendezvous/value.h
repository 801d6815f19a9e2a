// What travels along an edge of the graph.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>

namespace weir {

/// The version of what was neither read from a variable nor computed from such a tensor alone.
inline constexpr std::uint64_t kNoVersion = std::numeric_limits<std::uint64_t>::max();

/// A tensor and the version of the variable it was read from, or computed from. An undefined tensor
/// is an absent gradient, or the signal of a control edge. Values are immutable by agreement:
/// nobody writes into `tensor`, except a variable's owner into a buffer that is read in place.
struct Value {
  at::Tensor tensor;
  std::uint64_t version = kNoVersion;
};

}  // namespace weir
