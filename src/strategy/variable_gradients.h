// The gradients of a loss, one for each trainable variable.
#pragma once

#include <vector>

#include "weir/graph.h"

namespace weir::strategy {

/// A variable's gradient on its way: dense, or the values for some rows.
struct VariableGradient {
  Variable variable;
  Output gradient;
  Output indices = {};  // of the rows, each once; invalid: the gradient is dense

  bool is_sparse() const { return indices.valid(); }
};

/// Adds the gradients of `loss` to its graph. What a variable is looked up for gives a sparse one,
/// what it is read for a dense one; who does both gets the sum, which is dense. Empty after an
/// error, which the graph then holds.
std::vector<VariableGradient> GradientsOf(Output loss);

}  // namespace weir::strategy
