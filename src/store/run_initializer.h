// Draws the first value of a variable or of a slot.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "weir/initializer.h"

namespace weir::store {

/// Runs `initializer` for the variable `name`: deterministic in (initializer, seed, name), by a
/// generator of its own; another name gets other numbers. The result is contiguous, 64-byte aligned
/// and every page of it has been touched. InvalidArgument for an initialiser that makes no sense (a
/// bad shape, a Value of another shape, a negative standard deviation); ResourceExhausted, with the
/// name and the bytes, when there is no memory.
absl::StatusOr<at::Tensor> RunInitializer(const Initializer& initializer, std::uint64_t seed,
                                          const std::string& name);

/// A tensor that is not initialised. ResourceExhausted with `name` and the bytes when there is no
/// memory; sizes are checked before anything is allocated.
absl::StatusOr<at::Tensor> AllocateTensor(at::IntArrayRef shape, at::ScalarType dtype,
                                          const std::string& name);

}  // namespace weir::store
