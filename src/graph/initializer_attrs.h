// A variable's initialiser as attributes of its node, in which form it travels to the variable's
// task: "dtype", "shape", "initializer" (the kind), "initializer_a", "initializer_b", and
// "initializer_value" where the kind is kValue.
#pragma once

#include "absl/status/statusor.h"
#include "weir/graph.h"
#include "weir/initializer.h"

namespace weir::graph {

/// Sets those attributes. REQUIRES: `initializer` is valid (CheckInitializer).
void InitializerToAttrs(const Initializer& initializer, Node& node);

/// The initialiser of a Variable node. InvalidArgument with the node's name when an attribute is
/// missing, of a wrong type, or makes no valid initialiser: the node may come from anywhere.
absl::StatusOr<Initializer> InitializerFromAttrs(const Node& node);

/// InvalidArgument unless there is a tensor of that dtype and shape, and, for kValue, `value` is
/// it.
absl::Status CheckInitializer(const Initializer& initializer);

}  // namespace weir::graph
