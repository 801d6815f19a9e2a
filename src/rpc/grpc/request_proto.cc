#include "rpc/grpc/request_proto.h"

#include <utility>

#include "base/status.h"
#include "rpc/grpc/caller_proto.h"
#include "rpc/grpc/graph_proto.h"

namespace weir::rpc {
namespace {

template <typename Request>
Request RequestFrom(const Caller& caller) {
  Request request;
  ToProto(caller, request.mutable_caller());
  return request;
}

template <typename List>
std::vector<std::string> Texts(const List& list) {
  return {list.begin(), list.end()};
}

}  // namespace

v1::GetStatusRequest MakeGetStatusRequest(const Caller& caller, bool with_variables) {
  auto request = RequestFrom<v1::GetStatusRequest>(caller);
  request.set_with_variables(with_variables);
  return request;
}

v1::AnnounceRequest MakeAnnounceRequest(const Caller& caller) {
  return RequestFrom<v1::AnnounceRequest>(caller);
}

absl::StatusOr<v1::EnsureVariablesRequest> MakeEnsureVariablesRequest(const Caller& caller,
                                                                      const GraphDef& variables,
                                                                      bool initialize) {
  auto request = RequestFrom<v1::EnsureVariablesRequest>(caller);
  WEIR_RETURN_IF_ERROR(ToProto(variables, request.mutable_variables()));
  request.set_initialize(initialize);
  return request;
}

absl::StatusOr<v1::RegisterPlanRequest> MakeRegisterPlanRequest(
    const Caller& caller, const PlanRegistration& registration) {
  auto request = RequestFrom<v1::RegisterPlanRequest>(caller);
  request.set_origin(registration.origin);
  ToProto(registration.master, request.mutable_master());
  request.set_plan(registration.plan);
  for (const graph::PartitionDef& partition : registration.partitions) {
    v1::Partition* proto = request.add_partitions();
    proto->set_device(partition.device);
    WEIR_RETURN_IF_ERROR(ToProto(partition.graph, proto->mutable_graph()));
  }
  return request;
}

v1::ReleasePlansRequest MakeReleasePlansRequest(const Caller& caller, std::uint64_t origin,
                                                const std::vector<std::uint64_t>& plans) {
  auto request = RequestFrom<v1::ReleasePlansRequest>(caller);
  request.set_origin(origin);
  request.mutable_plans()->Add(plans.begin(), plans.end());
  return request;
}

v1::ResetRequest MakeResetRequest(const Caller& caller,
                                  const std::vector<std::string>& containers) {
  auto request = RequestFrom<v1::ResetRequest>(caller);
  request.mutable_containers()->Add(containers.begin(), containers.end());
  return request;
}

v1::ShutdownRequest MakeShutdownRequest(const Caller& caller, const std::string& reason) {
  auto request = RequestFrom<v1::ShutdownRequest>(caller);
  request.set_reason(reason);
  return request;
}

absl::StatusOr<v1::OpenSessionRequest> MakeOpenSessionRequest(const Caller& caller,
                                                              const SessionRequest& session) {
  auto request = RequestFrom<v1::OpenSessionRequest>(caller);
  WEIR_RETURN_IF_ERROR(ToProto(session.graph, request.mutable_graph()));
  request.set_initialize(session.initialize);
  request.set_soft_placement(session.soft_placement);
  request.set_start_timeout_ms(session.start_timeout_ms);
  request.set_cluster_name(session.cluster_name);
  return request;
}

v1::MakePlanRequest MakeMakePlanRequest(const Caller& caller, std::uint64_t session,
                                        const graph::Signature& signature) {
  auto request = RequestFrom<v1::MakePlanRequest>(caller);
  request.set_session(session);
  request.mutable_feeds()->Add(signature.feeds.begin(), signature.feeds.end());
  request.mutable_fetches()->Add(signature.fetches.begin(), signature.fetches.end());
  request.mutable_targets()->Add(signature.targets.begin(), signature.targets.end());
  return request;
}

v1::CloseSessionRequest MakeCloseSessionRequest(const Caller& caller, std::uint64_t session) {
  auto request = RequestFrom<v1::CloseSessionRequest>(caller);
  request.set_session(session);
  return request;
}

absl::StatusOr<Method<absl::StatusOr<TaskStatus>>> MethodFromProto(
    const v1::GetStatusRequest& request) {
  WEIR_ASSIGN_OR_RETURN(Caller caller, FromProto(request.caller()));
  return [caller, with_variables = request.with_variables()](TaskService& service) {
    return service.GetStatus(caller, with_variables);
  };
}

absl::StatusOr<StatusMethod> MethodFromProto(const v1::AnnounceRequest& request) {
  WEIR_ASSIGN_OR_RETURN(Caller caller, FromProto(request.caller()));
  return [caller](TaskService& service) { return service.Announce(caller); };
}

absl::StatusOr<StatusMethod> MethodFromProto(const v1::EnsureVariablesRequest& request) {
  WEIR_ASSIGN_OR_RETURN(Caller caller, FromProto(request.caller()));
  WEIR_ASSIGN_OR_RETURN(GraphDef variables, FromProto(request.variables()));
  return [caller, variables = std::move(variables),
          initialize = request.initialize()](TaskService& service) {
    return service.EnsureVariables(caller, variables, initialize);
  };
}

absl::StatusOr<StatusMethod> MethodFromProto(const v1::RegisterPlanRequest& request) {
  WEIR_ASSIGN_OR_RETURN(Caller caller, FromProto(request.caller()));
  PlanRegistration registration;
  registration.origin = request.origin();
  WEIR_ASSIGN_OR_RETURN(registration.master, FromProto(request.master()));
  registration.plan = request.plan();
  for (const v1::Partition& partition : request.partitions()) {
    WEIR_ASSIGN_OR_RETURN(GraphDef graph, FromProto(partition.graph()));
    registration.partitions.push_back({partition.device(), std::move(graph)});
  }
  return [caller, registration = std::move(registration)](TaskService& service) mutable {
    return service.RegisterPlan(caller, std::move(registration));
  };
}

absl::StatusOr<StatusMethod> MethodFromProto(const v1::ReleasePlansRequest& request) {
  WEIR_ASSIGN_OR_RETURN(Caller caller, FromProto(request.caller()));
  return [caller, origin = request.origin(),
          plans = std::vector<std::uint64_t>(request.plans().begin(), request.plans().end())](
             TaskService& service) { return service.ReleasePlans(caller, origin, plans); };
}

absl::StatusOr<StatusMethod> MethodFromProto(const v1::ResetRequest& request) {
  WEIR_ASSIGN_OR_RETURN(Caller caller, FromProto(request.caller()));
  return [caller, containers = Texts(request.containers())](TaskService& service) {
    return service.Reset(caller, containers);
  };
}

absl::StatusOr<StatusMethod> MethodFromProto(const v1::ShutdownRequest& request) {
  WEIR_ASSIGN_OR_RETURN(Caller caller, FromProto(request.caller()));
  return [caller, reason = request.reason()](TaskService& service) {
    return service.Shutdown(caller, reason);
  };
}

absl::StatusOr<Method<absl::StatusOr<SessionReply>>> MethodFromProto(
    const v1::OpenSessionRequest& request) {
  WEIR_ASSIGN_OR_RETURN(Caller caller, FromProto(request.caller()));
  SessionRequest session;
  WEIR_ASSIGN_OR_RETURN(session.graph, FromProto(request.graph()));
  session.initialize = request.initialize();
  session.soft_placement = request.soft_placement();
  session.start_timeout_ms = request.start_timeout_ms();
  session.cluster_name = request.cluster_name();
  return [caller, session = std::move(session)](TaskService& service) mutable {
    return service.OpenSession(caller, std::move(session));
  };
}

absl::StatusOr<Method<absl::StatusOr<PlanReply>>> MethodFromProto(
    const v1::MakePlanRequest& request) {
  WEIR_ASSIGN_OR_RETURN(Caller caller, FromProto(request.caller()));
  const graph::Signature signature{Texts(request.feeds()), Texts(request.fetches()),
                                   Texts(request.targets())};
  return [caller, session = request.session(), signature](TaskService& service) {
    return service.MakePlan(caller, session, signature);
  };
}

absl::StatusOr<StatusMethod> MethodFromProto(const v1::CloseSessionRequest& request) {
  WEIR_ASSIGN_OR_RETURN(Caller caller, FromProto(request.caller()));
  return [caller, session = request.session()](TaskService& service) {
    return service.CloseSession(caller, session);
  };
}

}  // namespace weir::rpc
