#include "optim/spec_attrs.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weir::optim {
namespace {

constexpr char kHyper[] = "hyper.";
constexpr char kNumber[] = "rate.number.";

void SetNumbers(const std::map<std::string, double>& numbers, const std::string& prefix,
                AttrMap& attrs) {
  for (const auto& [name, value] : numbers) attrs[absl::StrCat(prefix, name)] = value;
}

absl::Status TakeNumbersOf(const AttrMap& attrs, const std::string& prefix,
                           std::map<std::string, double>& numbers) {
  for (const auto& [name, value] : attrs) {
    if (!name.starts_with(prefix)) continue;
    const auto* number = std::get_if<double>(&value);
    if (number == nullptr) return absl::InvalidArgumentError(absl::StrCat(name, " is no number"));
    numbers[name.substr(prefix.size())] = *number;
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Take(const AttrMap& attrs, const char* name, T& to) {
  const auto found = attrs.find(name);
  const T* value = found == attrs.end() ? nullptr : std::get_if<T>(&found->second);
  if (value == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("attribute '", name, "' is missing or wrong"));
  to = *value;
  return absl::OkStatus();
}

}  // namespace

void SetSpecAttrs(const OptimizerSpec& spec, AttrMap& attrs) {
  attrs["rule"] = spec.rule;
  attrs["use_locking"] = spec.use_locking;
  SetNumbers(spec.hyperparameters, kHyper, attrs);
  const LearningRate& rate = spec.learning_rate;
  attrs["rate.schedule"] = rate.schedule;
  SetNumbers(rate.numbers, kNumber, attrs);
  attrs["rate.boundaries"] = rate.boundaries;
  attrs["rate.rates"] = rate.rates;
  attrs["rate.warm_up_steps"] = rate.warm_up_steps;
  attrs["rate.warm_up_starts"] = rate.warm_up_starts;
}

absl::StatusOr<OptimizerSpec> SpecFromAttrs(const AttrMap& attrs) {
  OptimizerSpec spec;
  WEIR_RETURN_IF_ERROR(Take(attrs, "rule", spec.rule));
  WEIR_RETURN_IF_ERROR(Take(attrs, "use_locking", spec.use_locking));
  WEIR_RETURN_IF_ERROR(TakeNumbersOf(attrs, kHyper, spec.hyperparameters));
  LearningRate& rate = spec.learning_rate;
  rate.numbers.clear();
  WEIR_RETURN_IF_ERROR(Take(attrs, "rate.schedule", rate.schedule));
  WEIR_RETURN_IF_ERROR(TakeNumbersOf(attrs, kNumber, rate.numbers));
  WEIR_RETURN_IF_ERROR(Take(attrs, "rate.boundaries", rate.boundaries));
  WEIR_RETURN_IF_ERROR(Take(attrs, "rate.rates", rate.rates));
  WEIR_RETURN_IF_ERROR(Take(attrs, "rate.warm_up_steps", rate.warm_up_steps));
  WEIR_RETURN_IF_ERROR(Take(attrs, "rate.warm_up_starts", rate.warm_up_starts));
  return spec;
}

}  // namespace weir::optim
