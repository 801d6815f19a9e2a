#include "optim/rate_schedule.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numbers>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "optim/hyperparameters.h"

namespace weir::optim {
namespace {

using Function = std::function<double(double step)>;
using FunctionOr = absl::StatusOr<Function>;

template <std::size_t N>
auto Take(const LearningRate& rate, const std::array<const char*, N>& names) {
  return TakeNumbers<N>(rate.numbers, absl::StrCat("the schedule ", rate.schedule), names);
}

absl::Status CheckSteps(const char* name, double steps) {
  if (steps > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " = ", steps, " must be more than 0"));
}

FunctionOr Constant(const LearningRate& rate) {
  WEIR_ASSIGN_OR_RETURN(const auto numbers, Take<1>(rate, {"initial"}));
  return [initial = numbers[0]](double) { return initial; };
}

absl::Status CheckFinite(const char* name, const std::vector<double>& list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (std::isfinite(list[i])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, "[", i, "] = ", list[i], " of a piecewise schedule is not finite"));
  }
  return absl::OkStatus();
}

absl::Status CheckRising(const std::vector<double>& boundaries) {
  for (std::size_t i = 1; i < boundaries.size(); ++i) {
    if (boundaries[i] > boundaries[i - 1]) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "boundaries[", i, "] = ", boundaries[i],
        " of a piecewise schedule must be more than the one before, ", boundaries[i - 1]));
  }
  return absl::OkStatus();
}

FunctionOr Piecewise(const LearningRate& rate) {
  WEIR_RETURN_IF_ERROR(Take<0>(rate, {}).status());
  if (rate.rates.size() != rate.boundaries.size() + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a piecewise schedule needs one rate more than boundaries; it has ",
                     rate.boundaries.size(), " boundaries and ", rate.rates.size(), " rates"));
  }
  WEIR_RETURN_IF_ERROR(CheckFinite("boundaries", rate.boundaries));
  WEIR_RETURN_IF_ERROR(CheckFinite("rates", rate.rates));
  WEIR_RETURN_IF_ERROR(CheckRising(rate.boundaries));
  return [boundaries = rate.boundaries, rates = rate.rates](double step) {
    const auto next = std::ranges::lower_bound(boundaries, step);
    return rates[static_cast<std::size_t>(next - boundaries.begin())];
  };
}

FunctionOr Exponential(const LearningRate& rate) {
  WEIR_ASSIGN_OR_RETURN(const auto numbers,
                        Take<4>(rate, {"initial", "decay_steps", "decay_rate", "staircase"}));
  const auto [initial, decay_steps, decay_rate, staircase] = numbers;
  WEIR_RETURN_IF_ERROR(CheckSteps("decay_steps", decay_steps));
  if (decay_rate < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("decay_rate = ", decay_rate, " must not be negative"));
  }
  return [=](double step) {
    const double exponent = step / decay_steps;
    return initial * std::pow(decay_rate, staircase != 0 ? std::floor(exponent) : exponent);
  };
}

FunctionOr Polynomial(const LearningRate& rate) {
  WEIR_ASSIGN_OR_RETURN(const auto numbers,
                        Take<5>(rate, {"initial", "decay_steps", "end", "power", "cycle"}));
  const auto [initial, decay_steps, end, power, cycle] = numbers;
  WEIR_RETURN_IF_ERROR(CheckSteps("decay_steps", decay_steps));
  if (power < 0) {
    return absl::InvalidArgumentError(absl::StrCat("power = ", power, " must not be negative"));
  }
  return [=](double step) {
    const double whole =
        cycle != 0 ? decay_steps * std::max(1.0, std::ceil(step / decay_steps)) : decay_steps;
    return (initial - end) * std::pow(1 - std::min(step, whole) / whole, power) + end;
  };
}

FunctionOr Cosine(const LearningRate& rate) {
  WEIR_ASSIGN_OR_RETURN(const auto numbers, Take<3>(rate, {"initial", "decay_steps", "alpha"}));
  const auto [initial, decay_steps, alpha] = numbers;
  WEIR_RETURN_IF_ERROR(CheckSteps("decay_steps", decay_steps));
  return [=](double step) {
    const double way = std::min(step, decay_steps) / decay_steps;
    return initial * ((1 - alpha) * 0.5 * (1 + std::cos(std::numbers::pi * way)) + alpha);
  };
}

constexpr std::pair<std::string_view, FunctionOr (*)(const LearningRate&)> kSchedules[] = {
    {"constant", Constant},     {"piecewise", Piecewise}, {"exponential", Exponential},
    {"polynomial", Polynomial}, {"cosine", Cosine},
};

FunctionOr FindSchedule(const LearningRate& rate) {
  for (const auto& [name, make] : kSchedules) {
    if (name == rate.schedule) return make(rate);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown schedule \"", rate.schedule, "\""));
}

FunctionOr WarmedUp(Function then, double steps, double start) {
  if (!(steps > 0) || !std::isfinite(steps)) {
    return absl::InvalidArgumentError(
        absl::StrCat("steps = ", steps, " of a warm-up must be more than 0, and finite"));
  }
  if (!(start >= 0 && start <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("start = ", start, " of a warm-up must be in [0, 1]"));
  }
  return [=, then = std::move(then)](double step) {
    return then(step) * (start + (1 - start) * std::min(step, steps) / steps);
  };
}

FunctionOr AllWarmedUp(FunctionOr function, const LearningRate& rate) {
  if (rate.warm_up_steps.size() != rate.warm_up_starts.size()) {
    return absl::InvalidArgumentError(absl::StrCat("warm-ups need a start each; there are ",
                                                   rate.warm_up_steps.size(), " and ",
                                                   rate.warm_up_starts.size(), " starts"));
  }
  for (std::size_t i = 0; function.ok() && i < rate.warm_up_steps.size(); ++i)
    function = WarmedUp(*std::move(function), rate.warm_up_steps[i], rate.warm_up_starts[i]);
  return function;
}

}  // namespace

absl::StatusOr<RateSchedule> RateSchedule::Make(const LearningRate& rate) {
  FunctionOr function = AllWarmedUp(FindSchedule(rate), rate);
  if (!function.ok()) return Annotate(function.status(), "learning_rate");
  return RateSchedule(*std::move(function), rate.is_constant());
}

}  // namespace weir::optim
