// The rules there are: one factory each, used by MakeUpdateRule.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "optim/hyperparameters.h"
#include "optim/rate_schedule.h"
#include "optim/update_rule.h"

namespace weir::optim {

/// What every rule is made from. `variable` is of dtype float32 or float64.
struct RuleContext {
  const OptimizerSpec& spec;
  const std::string& scope;  // of the slots
  const RateSchedule& rate;
  std::shared_ptr<store::Variable> variable;
};

using RuleOr = absl::StatusOr<std::unique_ptr<UpdateRule>>;

RuleOr MakeAdadelta(const RuleContext& context);
RuleOr MakeAdagrad(const RuleContext& context);
RuleOr MakeAdagradDa(const RuleContext& context);
RuleOr MakeAdam(const RuleContext& context);
RuleOr MakeAdamW(const RuleContext& context);
RuleOr MakeFtrl(const RuleContext& context);
RuleOr MakeLamb(const RuleContext& context);
RuleOr MakeLazyAdam(const RuleContext& context);
RuleOr MakeMomentum(const RuleContext& context);
RuleOr MakeMovingAverage(const RuleContext& context);
RuleOr MakeProximalAdagrad(const RuleContext& context);
RuleOr MakeProximalGradientDescent(const RuleContext& context);
RuleOr MakeRmsProp(const RuleContext& context);
RuleOr MakeSgd(const RuleContext& context);

/// The numbers of `names` in the spec, in that order, which must be all it has and fit the
/// variable's dtype.
template <std::size_t N>
absl::StatusOr<std::array<double, N>> TakeHyperparameters(const RuleContext& context,
                                                          const std::array<const char*, N>& names) {
  const OptimizerSpec& spec = context.spec;
  WEIR_ASSIGN_OR_RETURN(const auto values, TakeNumbers<N>(spec.hyperparameters, spec.rule, names));
  if (context.variable->def().initializer.dtype == at::kFloat)
    WEIR_RETURN_IF_ERROR(CheckFits<float>(spec.hyperparameters));
  return values;
}

/// Which learning rates a rule can use.
enum class RateKind : std::uint8_t { kAny, kPositive };

/// InvalidArgument unless `rate` fits T, the variable's type, and is what the rule can use.
template <typename T>
absl::Status CheckRate(double rate, RateKind kind) {
  WEIR_RETURN_IF_ERROR(CheckFits<T>("learning_rate", rate));
  return kind == RateKind::kAny ? absl::OkStatus() : CheckPositive<T>("learning_rate", rate);
}

/// The learning rate of the update that `step` steps come before, as a number that fits T: a
/// schedule may leave what T can hold at any step. InvalidArgument names the rate, the step and the
/// variable.
template <typename T>
absl::StatusOr<double> RateOf(const RateSchedule& schedule, std::int64_t step, RateKind kind,
                              const store::Variable& variable) {
  const double rate = schedule.At(step);
  const absl::Status status = CheckRate<T>(rate, kind);
  if (status.ok()) return rate;
  return Annotate(
      status, absl::StrCat("optimizer of variable \"", variable.def().name, "\" at step ", step));
}

/// A slot of the variable's shape and dtype, first filled with `value`.
absl::StatusOr<at::Tensor> FilledSlot(const RuleContext& context, const char* name, double value);
/// A slot that is a float64 scalar, first `value`.
absl::StatusOr<at::Tensor> ScalarSlot(const RuleContext& context, const char* name, double value);

/// Calls `make.template operator()<T>()` with T the variable's type.
template <typename Make>
auto MakeForDtype(const RuleContext& context, Make&& make) {
  return context.variable->def().initializer.dtype == at::kDouble
             ? make.template operator()<double>()
             : make.template operator()<float>();
}

/// InvalidArgument unless `value` is more than 0 in the variable's type.
inline absl::Status CheckPositive(const RuleContext& context, const char* name, double value) {
  return MakeForDtype(context, [&]<typename T>() { return CheckPositive<T>(name, value); });
}

}  // namespace weir::optim
