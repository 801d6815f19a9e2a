#include "rpc/grpc/reply_proto.h"

#include <cstdint>

#include "base/status.h"
#include "rpc/grpc/caller_proto.h"
#include "rpc/grpc/status_proto.h"

namespace weir::rpc {
namespace {

void WriteVariable(const VariableStatus& variable, v1::VariableStatus* proto) {
  proto->set_name(variable.name);
  proto->set_container(variable.container);
  proto->set_dtype(variable.dtype);
  proto->mutable_shape()->Add(variable.shape.begin(), variable.shape.end());
  proto->set_bytes(variable.bytes);
  proto->set_version(variable.version);
  proto->set_initialized(variable.initialized);
  proto->set_trainable(variable.trainable);
  v1::StalenessStatus* staleness = proto->mutable_staleness();
  staleness->set_count(variable.staleness.count);
  staleness->set_p50(variable.staleness.p50);
  staleness->set_p99(variable.staleness.p99);
  staleness->set_max(variable.staleness.max);
  staleness->set_mean(variable.staleness.mean);
}

absl::StatusOr<VariableStatus> ReadVariable(const v1::VariableStatus& proto) {
  VariableStatus variable;
  variable.name = proto.name();
  variable.container = proto.container();
  variable.dtype = proto.dtype();
  for (const std::int64_t dim : proto.shape()) {
    if (dim < -1) return absl::InvalidArgumentError(absl::StrCat("a dimension of ", dim));
    variable.shape.push_back(dim);
  }
  variable.bytes = proto.bytes();
  variable.version = proto.version();
  variable.initialized = proto.initialized();
  variable.trainable = proto.trainable();
  const v1::StalenessStatus& staleness = proto.staleness();
  variable.staleness = {staleness.count(), staleness.p50(), staleness.p99(), staleness.max(),
                        staleness.mean()};
  return variable;
}

void WriteTask(const TaskStatus& task, v1::TaskStatus* proto) {
  proto->set_cluster_id(task.cluster_id);
  ToProto(task.task, proto->mutable_task());
  proto->set_incarnation(task.incarnation);
  proto->set_data_address(task.data_address);
  proto->set_version(task.version);
  proto->set_pid(task.pid);
  proto->set_uptime_s(task.uptime_s);
  proto->set_steps_run(task.steps_run);
  proto->set_steps_running(task.steps_running);
  proto->set_bytes_in(task.bytes_in);
  proto->set_bytes_out(task.bytes_out);
  for (const VariableStatus& variable : task.variables) {
    WriteVariable(variable, proto->add_variables());
  }
}

absl::StatusOr<TaskStatus> ReadTask(const v1::TaskStatus& proto) {
  TaskStatus task;
  task.cluster_id = proto.cluster_id();
  WEIR_ASSIGN_OR_RETURN(task.task, FromProto(proto.task()));
  task.incarnation = proto.incarnation();
  task.data_address = proto.data_address();
  task.version = proto.version();
  task.pid = proto.pid();
  task.uptime_s = proto.uptime_s();
  task.steps_run = proto.steps_run();
  task.steps_running = proto.steps_running();
  task.bytes_in = proto.bytes_in();
  task.bytes_out = proto.bytes_out();
  for (const v1::VariableStatus& variable : proto.variables()) {
    WEIR_ASSIGN_OR_RETURN(task.variables.emplace_back(), ReadVariable(variable));
  }
  return task;
}

}  // namespace

void ToProto(const absl::Status& result, v1::Acknowledgement* proto) {
  ToProto(result, proto->mutable_status());
}

void ToProto(const absl::StatusOr<TaskStatus>& result, v1::GetStatusReply* proto) {
  ToProto(result.status(), proto->mutable_status());
  if (result.ok()) WriteTask(*result, proto->mutable_task());
}

void ToProto(const absl::StatusOr<SessionReply>& result, v1::OpenSessionReply* proto) {
  ToProto(result.status(), proto->mutable_status());
  if (!result.ok()) return;
  proto->set_session(result->session);
  proto->set_data_address(result->data_address);
  proto->set_incarnation(result->incarnation);
}

void ToProto(const absl::StatusOr<PlanReply>& result, v1::MakePlanReply* proto) {
  ToProto(result.status(), proto->mutable_status());
  if (!result.ok()) return;
  proto->set_plan(result->plan);
  proto->set_dump(result->dump);
  proto->set_num_fetches(result->num_fetches);
}

absl::Status FromProto(const v1::Acknowledgement& proto) {
  return FromProto(proto.status());
}

absl::StatusOr<TaskStatus> FromProto(const v1::GetStatusReply& proto) {
  WEIR_RETURN_IF_ERROR(FromProto(proto.status()));
  return ReadTask(proto.task());
}

absl::StatusOr<SessionReply> FromProto(const v1::OpenSessionReply& proto) {
  WEIR_RETURN_IF_ERROR(FromProto(proto.status()));
  return SessionReply{proto.session(), proto.data_address(), proto.incarnation()};
}

absl::StatusOr<PlanReply> FromProto(const v1::MakePlanReply& proto) {
  WEIR_RETURN_IF_ERROR(FromProto(proto.status()));
  if (proto.num_fetches() < 0) {
    return absl::InvalidArgumentError(absl::StrCat("a plan of ", proto.num_fetches(), " fetches"));
  }
  return PlanReply{proto.plan(), proto.dump(), proto.num_fetches()};
}

}  // namespace weir::rpc
