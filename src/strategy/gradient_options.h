// What a worker does to its gradients before they leave.
#pragma once

#include <vector>

#include "strategy/variable_gradients.h"
#include "weir/strategy.h"

namespace weir::strategy {

/// Adds what `options` ask for: each gradient is replaced by the one to apply. Wrong options become
/// errors of the graph.
void ApplyOptions(const GradientOptions& options, std::vector<VariableGradient>& gradients);

}  // namespace weir::strategy
