// The rules there are: one factory each, used by MakeUpdateRule.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "optim/update_rule.h"

namespace weir::optim {

/// What every rule is made from. `variable` is of dtype float32 or float64.
struct RuleContext {
  const OptimizerSpec& spec;
  const std::string& scope;  // of the slots
  std::shared_ptr<store::Variable> variable;
};

using RuleFactory = absl::StatusOr<std::unique_ptr<UpdateRule>> (*)(const RuleContext& context);

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeSgd(const RuleContext& context);
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeMomentum(const RuleContext& context);
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdam(const RuleContext& context);

/// A slot of the variable's shape and dtype, first all zeros.
absl::StatusOr<at::Tensor> ZeroSlot(const RuleContext& context, const char* name);

/// Calls `make.template operator()<T>()` with T the variable's type.
template <typename Make>
auto MakeForDtype(const RuleContext& context, Make&& make) {
  return context.variable->def().initializer.dtype == at::kDouble
             ? make.template operator()<double>()
             : make.template operator()<float>();
}

}  // namespace weir::optim
