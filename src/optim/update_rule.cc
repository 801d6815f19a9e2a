#include "optim/update_rule.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "optim/rules.h"
#include "store/dense.h"
#include "tensor/dtype.h"

namespace weir::optim {
namespace {

constexpr std::pair<const char*, RuleFactory> kRules[] = {
    {"GradientDescent", MakeSgd},
    {"Momentum", MakeMomentum},
    {"Adam", MakeAdam},
};

}  // namespace

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(
    const OptimizerSpec& spec, const std::string& scope,
    std::shared_ptr<store::Variable> variable) {
  WEIR_CHECK(variable != nullptr);
  const std::string context = absl::StrCat("optimizer of variable \"", variable->def().name, "\"");
  const at::ScalarType dtype = variable->def().initializer.dtype;
  if (dtype != at::kFloat && dtype != at::kDouble) {
    return absl::InvalidArgumentError(
        absl::StrCat(context, ": dtype ", DtypeName(dtype), " is neither float32 nor float64"));
  }
  for (const auto& [name, make] : kRules) {
    if (spec.rule != name) continue;
    auto rule = make({.spec = spec, .scope = scope, .variable = std::move(variable)});
    if (!rule.ok()) return Annotate(rule.status(), context);
    return rule;
  }
  return absl::InvalidArgumentError(absl::StrCat(context, ": unknown rule \"", spec.rule, "\""));
}

absl::StatusOr<at::Tensor> ZeroSlot(const RuleContext& context, const char* name) {
  Initializer zeros;
  zeros.shape = context.variable->def().initializer.shape;
  zeros.dtype = context.variable->def().initializer.dtype;
  return context.variable->Slot(absl::StrCat(context.scope, "/", name), zeros);
}

absl::Status CheckGradient(const store::Variable& variable, const at::Tensor& gradient) {
  const store::VariableDef& def = variable.def();
  return store::CheckDense(gradient, def.initializer.dtype, def.initializer.shape,
                           absl::StrCat("gradient of variable \"", def.name, "\""));
}

}  // namespace weir::optim
