// Reading rows of a variable that may be cut into slices.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/sliced_graph.h"

namespace weir::graph {

/// InvalidArgument when the variable is cut across its rows.
absl::Status CheckRows(const Node& variable, const SlicedVariable* sliced);

/// Adds what node `n`, which uses `variable`, needs to have the rows `ids` (each is fetched once,
/// from the slice that has it) and to put them in the order of `ids` on `device`; returns that
/// value.
absl::StatusOr<Edge> AddRowsInOrder(SlicedGraph& graph, int n, const Node& variable,
                                    const SlicedVariable& sliced, const Edge& ids,
                                    const std::string& device);

/// Writes a Lookup (of a whole variable too, since it is sugar) or a Gather.
absl::Status WriteLookup(SlicedGraph& graph, int n, const Node& variable,
                         const SlicedVariable* sliced);
absl::Status WriteGather(SlicedGraph& graph, int n, const Node& variable,
                         const SlicedVariable& sliced);

}  // namespace weir::graph
