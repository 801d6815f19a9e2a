#include "optim/update_rule.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "optim/rules.h"
#include "store/dense.h"
#include "tensor/dtype.h"

namespace weir::optim {
namespace {

constexpr std::pair<const char*, RuleOr (*)(const RuleContext&)> kRules[] = {
    {"GradientDescent", MakeSgd},
    {"Momentum", MakeMomentum},
    {"Adagrad", MakeAdagrad},
    {"AdagradDA", MakeAdagradDa},
    {"Adadelta", MakeAdadelta},
    {"Adam", MakeAdam},
    {"LazyAdam", MakeLazyAdam},
    {"AdamW", MakeAdamW},
    {"LAMB", MakeLamb},
    {"Ftrl", MakeFtrl},
    {"RMSProp", MakeRmsProp},
    {"ProximalGradientDescent", MakeProximalGradientDescent},
    {"ProximalAdagrad", MakeProximalAdagrad},
    {"MovingAverage", MakeMovingAverage},
};

// Rates are cast when they are used: here the first one is looked at, so that what can never fit is
// refused before training.
absl::Status CheckRate(const RateSchedule& rate, at::ScalarType dtype) {
  const double first = rate.At(0);
  return dtype == at::kFloat ? CheckFits<float>("learning_rate", first)
                             : CheckFits<double>("learning_rate", first);
}

RuleOr MakeRule(const OptimizerSpec& spec, const std::string& scope,
                std::shared_ptr<store::Variable> variable) {
  const at::ScalarType dtype = variable->def().initializer.dtype;
  if (dtype != at::kFloat && dtype != at::kDouble) {
    return absl::InvalidArgumentError(
        absl::StrCat("dtype ", DtypeName(dtype), " is neither float32 nor float64"));
  }
  for (const auto& [name, make] : kRules) {
    if (spec.rule != name) continue;
    WEIR_ASSIGN_OR_RETURN(const RateSchedule rate, RateSchedule::Make(spec.learning_rate));
    WEIR_RETURN_IF_ERROR(CheckRate(rate, dtype));
    return make({.spec = spec, .scope = scope, .rate = rate, .variable = std::move(variable)});
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown rule \"", spec.rule, "\""));
}

}  // namespace

RuleOr MakeUpdateRule(const OptimizerSpec& spec, const std::string& scope,
                      std::shared_ptr<store::Variable> variable) {
  WEIR_CHECK(variable != nullptr);
  const std::string context = absl::StrCat("optimizer of variable \"", variable->def().name, "\"");
  RuleOr rule = MakeRule(spec, scope, std::move(variable));
  if (!rule.ok()) return Annotate(rule.status(), context);
  return rule;
}

absl::StatusOr<at::Tensor> FilledSlot(const RuleContext& context, const char* name, double value) {
  Initializer initial;
  initial.shape = context.variable->def().initializer.shape;
  initial.dtype = context.variable->def().initializer.dtype;
  initial.a = value;
  return context.variable->Slot(absl::StrCat(context.scope, "/", name), initial);
}

absl::StatusOr<at::Tensor> ScalarSlot(const RuleContext& context, const char* name, double value) {
  Initializer initial;
  initial.dtype = at::kDouble;
  initial.a = value;
  return context.variable->Slot(absl::StrCat(context.scope, "/", name), initial);
}

absl::Status CheckGradient(const store::Variable& variable, const at::Tensor& gradient) {
  const store::VariableDef& def = variable.def();
  return store::CheckDense(gradient, def.initializer.dtype, def.initializer.shape,
                           absl::StrCat("gradient of variable \"", def.name, "\""));
}

}  // namespace weir::optim
