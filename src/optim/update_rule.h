// An optimizer's rule, as applied on the task that owns the variable. One file a rule. Adding one
// touches, besides that file: its struct in weir/optimizer.h, its maker in rules.h and the table in
// update_rule.cc, and its step (kernels/, and the list in kernels/steps.h) unless it shares one.
// Nothing outside this folder and that header knows rules by name.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "optim/sparse_gradient.h"
#include "store/variable.h"
#include "weir/optimizer.h"

namespace weir::optim {

/// Immutable after creation; one per Apply node of a plan. May be called from several threads at
/// once: without locking that is the point.
///
/// `step` is the number of training steps before the one that the gradient belongs to; a rule that
/// does not count steps ignores it. Both return the version before this update. InvalidArgument,
/// and nothing is updated, when the schedule's rate of this step is none that the rule can use in
/// the variable's dtype; it names the rate, the step and the variable.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// `step` matters: by a schedule, or by the rule's own formula.
  virtual bool counts_steps() const = 0;

  /// Applies `gradient` (dense, the variable's shape and dtype; already checked) to the variable in
  /// one fused pass, through Variable::Update.
  virtual absl::StatusOr<std::uint64_t> ApplyDense(const at::Tensor& gradient,
                                                   std::int64_t step) = 0;

  /// Applies a gradient of some rows (already checked), values for one row summed first.
  virtual absl::StatusOr<std::uint64_t> ApplySparse(const SparseGradient& gradient,
                                                    std::int64_t step) = 0;
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
