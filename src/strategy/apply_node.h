// The node that applies a gradient.
#pragma once

#include "strategy/variable_gradients.h"
#include "weir/graph.h"
#include "weir/optimizer.h"

namespace weir::strategy {

/// True if an update by `optimizer` depends on the number of its step.
bool CountsSteps(const OptimizerSpec& optimizer);

/// Adds the update of a variable by its gradient, on the task that owns it. `step` is the number of
/// the training step, from 1, an int64 scalar; invalid where the optimizer does not count steps.
Operation AddApply(const OptimizerSpec& optimizer, const VariableGradient& gradient, Output step);

}  // namespace weir::strategy
