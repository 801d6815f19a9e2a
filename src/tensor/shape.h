// Shapes with unknown parts: printing and comparing.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir {

/// "[?, 784]", "[]" for a scalar; "[...]" when not even the rank is known.
std::string ShapeToString(const std::optional<std::vector<std::int64_t>>& shape);

/// True if a tensor of `dims` is one of `shape`: -1 there allows any size, nullopt any rank.
bool ShapeAllows(const std::optional<std::vector<std::int64_t>>& shape, at::IntArrayRef dims);

}  // namespace weir
