// What two runs of one operator have in common.
#pragma once

#include <vector>

#include "weir/graph.h"

namespace weir::graph {

/// Keeps in `outputs` what `other` agrees with: a dimension that differs becomes -1, a shape of
/// another rank unknown, another dtype Undefined. An output is differentiable if it is in either.
/// REQUIRES: as many outputs in both.
void MergeOutputs(const std::vector<OutputInfo>& other, std::vector<OutputInfo>& outputs);

}  // namespace weir::graph
