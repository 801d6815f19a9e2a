// What is known of a node's outputs before it runs.
//
// An Aten operator is asked itself: it is run on meta tensors, which have a shape and no data, with
// gradients on, so that the same call tells which outputs are differentiable. Where libtorch's C++
// library has no meta kernel, it is run on CPU tensors of stride zero as long as they stay small.
// A dimension that is not known (-1) gets several sizes in turn; what differs between the results
// is not known either. An operator that fails for every size is an error only where all dimensions
// are known.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "weir/graph.h"

namespace weir::graph {

/// The outputs of an Aten node whose data inputs are described by `inputs`. What cannot be told is
/// unknown: a dimension -1, a shape nullopt, a dtype Undefined. InvalidArgument with the node's
/// name for what AtenCall::Build refuses, for shapes or dtypes the operator refuses (with its own
/// message), and when not even the number of outputs can be told.
absl::StatusOr<std::vector<OutputInfo>> InferAten(const Node& node,
                                                  const std::vector<OutputInfo>& inputs);

/// The outputs of `node`, whose inputs are edges of `graph`, by the rules of its op. Also checks
/// what the op asks of its inputs: that a handle is one, that a value fits its variable.
/// REQUIRES: edges in range. Function and Gradients nodes keep the outputs they declare.
absl::StatusOr<std::vector<OutputInfo>> InferOutputs(const GraphDef& graph, const Node& node);

}  // namespace weir::graph
