// Integer scalars, such as global_step: always read and written atomically.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "weir/initializer.h"

namespace weir::store {

bool IsCounter(const Initializer& initializer);

/// REQUIRES, of all three: the tensor is a scalar of int32 or int64.
std::int64_t LoadCounter(const at::Tensor& counter);
/// What does not fit an int32 wraps around, as sums do.
void StoreCounter(const at::Tensor& counter, std::int64_t value);
void AddToCounter(const at::Tensor& counter, std::int64_t value);

}  // namespace weir::store
