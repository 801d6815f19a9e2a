// What travels along an edge of the graph.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace weir {

/// A tensor and the version of the variable it was read from, or computed from. An undefined tensor
/// is an absent gradient, or the signal of a control edge. Values are immutable by agreement:
/// nobody writes into `tensor`, except a variable's owner into a buffer that is read in place.
struct Value {
  at::Tensor tensor;
  std::uint64_t version = 0;
};

}  // namespace weir
