// Who calls whom, in messages of the control plane.
#pragma once

#include "absl/status/statusor.h"
#include "cluster/task.h"
#include "rpc/control_plane.h"
#include "rpc/grpc/weir.pb.h"

namespace weir::rpc {

void ToProto(const TaskId& task, v1::TaskId* proto);
void ToProto(const Caller& caller, v1::Caller* proto);

/// InvalidArgument for a negative index.
absl::StatusOr<TaskId> FromProto(const v1::TaskId& proto);
absl::StatusOr<Caller> FromProto(const v1::Caller& proto);

}  // namespace weir::rpc
