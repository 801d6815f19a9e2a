// Finds the operator to name when a type is not known.
#pragma once

#include <string>

#include "weir/graph.h"

namespace weir::graph {

/// Why `node` gives outputs of unknown type, to be put behind a message: the operator it depends on
/// whose inputs are known, but fit it in none of the sizes that were tried for their unknown
/// dimensions. "" when there is none.
std::string WhyUnknown(const GraphDef& graph, int node);

}  // namespace weir::graph
