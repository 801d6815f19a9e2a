// Replies of the control plane. A reply carries the status of its call; anything else in it counts
// only when that is OK.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/control_plane.h"
#include "rpc/grpc/weir.pb.h"

namespace weir::rpc {

void ToProto(const absl::Status& result, v1::Acknowledgement* proto);
void ToProto(const absl::StatusOr<TaskStatus>& result, v1::GetStatusReply* proto);
void ToProto(const absl::StatusOr<SessionReply>& result, v1::OpenSessionReply* proto);
void ToProto(const absl::StatusOr<PlanReply>& result, v1::MakePlanReply* proto);

/// The status inside, or InvalidArgument for a reply that no ToProto writes.
absl::Status FromProto(const v1::Acknowledgement& proto);
absl::StatusOr<TaskStatus> FromProto(const v1::GetStatusReply& proto);
absl::StatusOr<SessionReply> FromProto(const v1::OpenSessionReply& proto);
absl::StatusOr<PlanReply> FromProto(const v1::MakePlanReply& proto);

}  // namespace weir::rpc
