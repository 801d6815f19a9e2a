#include "optim/hyperparameters.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace weir::optim {
namespace {

absl::Status Refuse(const char* name, double value, const char* rule) {
  return absl::InvalidArgumentError(absl::StrCat(name, " = ", value, " must ", rule));
}

}  // namespace

absl::Status CheckNumbers(const std::map<std::string, double>& numbers, const std::string& owner,
                          std::span<const char* const> names) {
  for (const auto& [name, value] : numbers) {
    if (std::ranges::find(names, name) == names.end()) {
      return absl::InvalidArgumentError(absl::StrCat(owner, " has no number \"", name,
                                                     "\"; it has ", absl::StrJoin(names, ", ")));
    }
    if (!std::isfinite(value)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " = ", value, " of ", owner, " is not finite"));
    }
  }
  for (const char* const name : names) {
    if (!numbers.contains(name)) {
      return absl::InvalidArgumentError(absl::StrCat(owner, " needs ", name));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNotNegative(const char* name, double value) {
  return value >= 0 ? absl::OkStatus() : Refuse(name, value, "not be negative");
}

absl::Status CheckNotPositive(const char* name, double value) {
  return value <= 0 ? absl::OkStatus() : Refuse(name, value, "not be more than 0");
}

absl::Status CheckBelowOne(const char* name, double value) {
  return value >= 0 && value < 1 ? absl::OkStatus() : Refuse(name, value, "be in [0, 1)");
}

}  // namespace weir::optim
