// Attributes of nodes in messages of the control plane.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/grpc/weir.pb.h"
#include "weir/graph.h"

namespace weir::rpc {

/// Writes the value of `proto`; the name is the caller's. InvalidArgument for a tensor or a type
/// that cannot travel.
absl::Status ToProto(const AttrValue& value, v1::Attr* proto);

/// InvalidArgument for an attribute without a value (a newer peer may know more kinds), an unknown
/// type, a tensor that is none.
absl::StatusOr<AttrValue> FromProto(const v1::Attr& proto);

}  // namespace weir::rpc
