#include "rpc/grpc/caller_proto.h"

#include "base/status.h"

namespace weir::rpc {

void ToProto(const TaskId& task, v1::TaskId* proto) {
  proto->set_job(task.job);
  proto->set_index(task.index);
}

void ToProto(const Caller& caller, v1::Caller* proto) {
  proto->set_cluster_id(caller.cluster_id);
  ToProto(caller.from, proto->mutable_from());
  proto->set_from_incarnation(caller.from_incarnation);
  ToProto(caller.to, proto->mutable_to());
  proto->set_to_incarnation(caller.to_incarnation);
}

absl::StatusOr<TaskId> FromProto(const v1::TaskId& proto) {
  if (proto.index() < 0) {
    return absl::InvalidArgumentError(absl::StrCat("a task of index ", proto.index()));
  }
  return TaskId{proto.job(), proto.index()};
}

absl::StatusOr<Caller> FromProto(const v1::Caller& proto) {
  Caller caller;
  caller.cluster_id = proto.cluster_id();
  WEIR_ASSIGN_OR_RETURN(caller.from, FromProto(proto.from()));
  caller.from_incarnation = proto.from_incarnation();
  WEIR_ASSIGN_OR_RETURN(caller.to, FromProto(proto.to()));
  caller.to_incarnation = proto.to_incarnation();
  return caller;
}

}  // namespace weir::rpc
