// Updates of variables that are cut into slices.
#pragma once

#include "absl/status/status.h"
#include "graph/sliced_graph.h"

namespace weir::graph {

/// Writes an update of the whole variable (Assign, AssignAdd, Apply) as one of each slice.
absl::Status WriteDenseUpdates(SlicedGraph& graph, int n, const SlicedVariable& sliced);

/// Writes an update of some rows (ScatterAdd, ScatterUpdate, a sparse Apply) as one of each slice,
/// by the rows that it has.
absl::Status WriteSparseUpdates(SlicedGraph& graph, int n, const SlicedVariable& sliced);

/// Writes an Average as one of each slice, by the like slice of the other variable; as it is when
/// both are whole. InvalidArgument when they are cut in two ways.
absl::Status WriteAverage(SlicedGraph& graph, int n);

}  // namespace weir::graph
