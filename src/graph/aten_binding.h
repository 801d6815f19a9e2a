// The positional arguments of Graph::Aten as inputs and attributes of a node.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "graph/aten_schema.h"
#include "weir/graph.h"

namespace weir::graph {

/// Sets the inputs and attributes of `node` from `args`, which are those of `op` in the order of
/// its schema; a generator's place may be skipped only by None. Arguments beyond `args` take their
/// defaults. InvalidArgument naming the argument and the schema. Types of attributes are left to
/// AtenCall::Build. REQUIRES: valid Outputs are of the node's graph.
absl::Status BindArguments(const AtenOperator& op, const std::vector<AtenArg>& args, Node& node);

}  // namespace weir::graph
