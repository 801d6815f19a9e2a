// Statuses in replies of the control plane.
#pragma once

#include "absl/status/status.h"
#include "rpc/grpc/weir.pb.h"

namespace weir::rpc {

/// Code and whole message; payloads stay at home.
void ToProto(const absl::Status& status, v1::Status* proto);

/// Unknown for a code that is none.
absl::Status FromProto(const v1::Status& proto);

}  // namespace weir::rpc
