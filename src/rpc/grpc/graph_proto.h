// Graphs in messages of the control plane.
//
// What comes back from a message has the form of a graph, but need not be one: that its edges lead
// somewhere and its ops exist is for graph::Validate to check (rpc/checked_service.h).
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/grpc/weir.pb.h"
#include "weir/graph.h"

namespace weir::rpc {

/// InvalidArgument, with the node's and the attribute's name, for a tensor or a type that cannot
/// travel; `proto` is then of no use.
absl::Status ToProto(const GraphDef& graph, v1::GraphDef* proto);

/// InvalidArgument, with the node's name, for a message that no ToProto writes: an unknown type, an
/// attribute without a value or given twice, a dimension below -1, a tensor whose size is wrong.
absl::StatusOr<GraphDef> FromProto(const v1::GraphDef& proto);

}  // namespace weir::rpc
