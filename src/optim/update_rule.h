// An optimizer's rule, as applied on the task that owns the variable. One file a rule; adding one
// touches this folder only (and gives it a public struct in weir/optimizer.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "store/variable.h"
#include "weir/optimizer.h"

namespace weir::optim {

/// Immutable after creation; one per Apply node of a plan. Apply may be called from several threads
/// at once: without locking that is the point.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// Applies `gradient` (dense, the variable's shape and dtype; already checked) to `variable` in
  /// one fused pass, through Variable::Update. Returns the version before this update.
  virtual absl::StatusOr<std::uint64_t> ApplyDense(const at::Tensor& gradient) = 0;
};

/// Makes the rule for one variable and its slots ("<scope>/m" ...), so that a step allocates
/// nothing. InvalidArgument: unknown rule, a missing, unknown or bad hyperparameter (a rate that is
/// not finite), a dtype other than float32 or float64.
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(
    const OptimizerSpec& spec, const std::string& scope, std::shared_ptr<store::Variable> variable);

/// Checks a gradient against its variable: dtype, shape, layout. InvalidArgument names the variable
/// and both shapes.
absl::Status CheckGradient(const store::Variable& variable, const at::Tensor& gradient);

}  // namespace weir::optim
