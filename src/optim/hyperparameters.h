// Reading the numbers of an OptimizerSpec, which may have come from another process.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "weir/optimizer.h"

namespace weir::optim {

/// InvalidArgument unless the hyperparameters of `spec` are exactly those of `names`, all finite.
absl::Status CheckHyperparameters(const OptimizerSpec& spec, const char* const* names,
                                  std::size_t count);

/// The values of `names`, in that order. InvalidArgument as above.
template <std::size_t N>
absl::StatusOr<std::array<double, N>> TakeHyperparameters(const OptimizerSpec& spec,
                                                          const std::array<const char*, N>& names) {
  WEIR_RETURN_IF_ERROR(CheckHyperparameters(spec, names.data(), N));
  std::array<double, N> values{};
  for (std::size_t i = 0; i < N; ++i) values[i] = spec.hyperparameters.at(names[i]);
  return values;
}

/// `value` as the variable's type; InvalidArgument when it does not fit.
template <typename T>
absl::StatusOr<T> FitNumber(const char* name, double value) {
  const T fitted = static_cast<T>(value);
  if (std::isfinite(fitted)) return fitted;
  return absl::InvalidArgumentError(
      absl::StrCat(name, " = ", value, " does not fit the variable's dtype"));
}

}  // namespace weir::optim
