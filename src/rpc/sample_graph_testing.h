// Graphs with something of everything that a graph can hold.
#pragma once

#include <string>

#include "weir/graph.h"

namespace weir::rpc {

/// As a user may write it: every type of attribute, every dtype that travels, shapes known and
/// unknown, control edges, a constant of 5 MB.
GraphDef SampleGraph();

/// Variable nodes alone.
GraphDef SampleVariables();

/// With ops that only passes insert.
GraphDef SamplePartition();

/// The first difference in words, "" when there is none. Tensors are compared bit by bit.
std::string Difference(const GraphDef& a, const GraphDef& b);

}  // namespace weir::rpc
