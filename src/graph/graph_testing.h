// Runs a graph without devices or steps, to compare what was inferred with what happens.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "weir/graph.h"

namespace weir::graph {

/// Values of all outputs of all nodes.
using Values = std::vector<std::vector<at::Tensor>>;

/// Evaluates every node that is a Placeholder (from `feeds`, by name), Const, Read (zeros of the
/// variable's shape), Identity or Aten; others have no values. Floating point feeds and reads
/// require gradients, so that results tell what is differentiable. Fails the test on an error.
Values Evaluate(const Graph& graph, const std::map<std::string, at::Tensor>& feeds);

/// True if a tensor may be what `info` says: same dtype, same rank, and the dimensions that are
/// known.
bool Describes(const OutputInfo& info, const at::Tensor& tensor);

/// "float32 {-1, 10} differentiable".
std::string ToText(const OutputInfo& info);

}  // namespace weir::graph
