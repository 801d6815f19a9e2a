// Reading named numbers, which may have come from another process.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status.h"

namespace weir::optim {

/// InvalidArgument unless `numbers` are exactly those of `names`, all finite. `owner` is who has
/// them: "Adam".
absl::Status CheckNumbers(const std::map<std::string, double>& numbers, const std::string& owner,
                          std::span<const char* const> names);

/// The values of `names`, in that order. InvalidArgument as above.
template <std::size_t N>
absl::StatusOr<std::array<double, N>> TakeNumbers(const std::map<std::string, double>& numbers,
                                                  const std::string& owner,
                                                  const std::array<const char*, N>& names) {
  WEIR_RETURN_IF_ERROR(CheckNumbers(numbers, owner, names));
  std::array<double, N> values{};
  for (std::size_t i = 0; i < N; ++i) values[i] = numbers.at(names[i]);
  return values;
}

/// InvalidArgument unless the number fits T, the type of the variable.
template <typename T>
absl::Status CheckFits(absl::string_view name, double value) {
  if (std::isfinite(static_cast<T>(value))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " = ", value, " does not fit the variable's dtype"));
}

/// The same of every number, after all of them have been read.
template <typename T>
absl::Status CheckFits(const std::map<std::string, double>& numbers) {
  for (const auto& [name, value] : numbers) WEIR_RETURN_IF_ERROR(CheckFits<T>(name, value));
  return absl::OkStatus();
}

/// InvalidArgument "beta1 = 1.5 must be in [0, 1)" and so on.
absl::Status CheckNotNegative(const char* name, double value);
absl::Status CheckNotPositive(const char* name, double value);
absl::Status CheckBelowOne(const char* name, double value);

/// InvalidArgument unless `value` is more than 0 as a T, the type of the variable. A denormal is
/// not: updates take those for 0 (see flush_denormals.h).
template <typename T>
absl::Status CheckPositive(const char* name, double value) {
  constexpr T kLeast = std::numeric_limits<T>::min();
  if (static_cast<T>(value) >= kLeast) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name, " = ", value, " must be more than 0: in the variable's dtype at least ", kLeast));
}

}  // namespace weir::optim
