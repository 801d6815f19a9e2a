// What a server answers on its two planes: the calls of rpc::TaskService and the frames of
// LinkSink.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "runtime/server.h"
#include "runtime/task_status.h"
#include "weir/version.h"

namespace weir::runtime {

absl::Status Server::Check(const rpc::Caller& caller) const {
  const Claim claim = {.cluster_id = caller.cluster_id,
                       .from = caller.from,
                       .to = caller.to,
                       .to_incarnation = caller.to_incarnation};
  return CheckClaim(claim, identity_, options_.config.cluster);
}

absl::StatusOr<rpc::TaskStatus> Server::GetStatus(const rpc::Caller& caller, bool with_variables) {
  WEIR_RETURN_IF_ERROR(Check(caller));
  rpc::TaskStatus status;
  status.cluster_id = identity_.cluster_id;
  status.task = identity_.task;
  status.incarnation = identity_.incarnation;
  status.data_address = data_address_;
  status.version = kVersion;
  status.pid = ::getpid();
  status.uptime_s = std::chrono::duration<double>(scheduler_.Now() - started_).count();
  status.steps_run = worker_.steps_run();
  status.steps_running = worker_.steps_running();
  status.bytes_in = traffic_.bytes_in.load(std::memory_order_relaxed);
  status.bytes_out = traffic_.bytes_out.load(std::memory_order_relaxed);
  if (with_variables) status.variables = StatusOfVariables(store_);
  return status;
}

absl::Status Server::Announce(const rpc::Caller& caller) {
  WEIR_RETURN_IF_ERROR(Check(caller));
  if (!caller.from.job.empty()) peers_.Poke(caller.from);
  return absl::OkStatus();
}

absl::Status Server::EnsureVariables(const rpc::Caller& caller, const GraphDef& variables,
                                     bool initialize) {
  WEIR_RETURN_IF_ERROR(Check(caller));
  return worker_.EnsureVariables(variables, initialize);
}

absl::Status Server::RegisterPlan(const rpc::Caller& caller, rpc::PlanRegistration registration) {
  WEIR_RETURN_IF_ERROR(Check(caller));
  if (registration.origin != caller.from_incarnation ||
      registration.origin == identity_.incarnation) {
    return absl::InvalidArgumentError("a plan in another master's name");
  }
  return worker_.RegisterPlan(registration, /*functions=*/nullptr);
}

absl::Status Server::ReleasePlans(const rpc::Caller& caller, std::uint64_t origin,
                                  const std::vector<std::uint64_t>& plans) {
  WEIR_RETURN_IF_ERROR(Check(caller));
  if (origin != caller.from_incarnation)
    return absl::InvalidArgumentError("plans of another master");
  worker_.ReleasePlans(origin, plans);
  return absl::OkStatus();
}

absl::Status Server::Reset(const rpc::Caller& caller, const std::vector<std::string>& containers) {
  WEIR_RETURN_IF_ERROR(Check(caller));
  worker_.Reset(containers);
  return absl::OkStatus();
}

absl::Status Server::Shutdown(const rpc::Caller& caller, const std::string& reason) {
  WEIR_RETURN_IF_ERROR(Check(caller));
  RequestShutdown(reason);
  return absl::OkStatus();
}

absl::StatusOr<rpc::SessionReply> Server::OpenSession(const rpc::Caller& caller,
                                                      rpc::SessionRequest request) {
  WEIR_RETURN_IF_ERROR(Check(caller));
  constexpr auto kLongest = static_cast<std::int64_t>(ClientSteps::kTimeoutMsMax);
  const auto start_timeout =
      std::chrono::milliseconds(std::clamp<std::int64_t>(request.start_timeout_ms, 0, kLongest));
  WEIR_ASSIGN_OR_RETURN(auto session,
                        master_.OpenSession(std::move(request.graph), /*functions=*/{},
                                            {.initialize = request.initialize,
                                             .soft_placement = request.soft_placement,
                                             .start_timeout = start_timeout}));
  WEIR_ASSIGN_OR_RETURN(const std::uint64_t number,
                        clients_.AddSession(caller.from_incarnation, std::move(session)));
  return rpc::SessionReply{
      .session = number, .data_address = data_address_, .incarnation = identity_.incarnation};
}

absl::StatusOr<rpc::PlanReply> Server::MakePlan(const rpc::Caller& caller, std::uint64_t session,
                                                const graph::Signature& signature) {
  WEIR_RETURN_IF_ERROR(Check(caller));
  WEIR_ASSIGN_OR_RETURN(const auto found, clients_.FindSession(caller.from_incarnation, session));
  WEIR_ASSIGN_OR_RETURN(const auto plan, found->MakePlan(signature));
  clients_.AddPlan(session, plan);
  return rpc::PlanReply{.plan = plan->number, .dump = plan->dump, .num_fetches = plan->num_fetches};
}

absl::Status Server::CloseSession(const rpc::Caller& caller, std::uint64_t session) {
  WEIR_RETURN_IF_ERROR(Check(caller));
  clients_.CloseSession(caller.from_incarnation, session);
  return absl::OkStatus();
}

void Server::OnLinkUp(const std::shared_ptr<Link>& link) {
  if (link->peer().is_client()) return clients_.OnLinkUp(*link);
  worker_.OnPeerUp(link->peer());
  peers_.OnLinkUp(link);
}

absl::StatusOr<Buffer> Server::OnTensorPayload(Link& link, const store::StepId& step,
                                               std::uint32_t edge, const TensorHeader& header) {
  if (link.peer().is_client()) return clients_.FeedBuffer(link, edge, header);
  return worker_.TensorBuffer(step, edge, header);
}

absl::Status Server::OnTensor(Link& link, const store::StepId& step, std::uint32_t edge,
                              Value value) {
  if (link.peer().is_client()) return clients_.OnFeed(link, step, edge, std::move(value));
  return worker_.DeliverTensor(step, edge, std::move(value));
}

absl::Status Server::OnRun(const std::shared_ptr<Link>& link, const store::StepId& step,
                           const RunMessage& message) {
  if (step.origin != link->peer().incarnation)
    return absl::InvalidArgumentError("a step in another master's name");
  absl::Status refusal;
  if (worker_.steps_running() >= options_.steps_max) {
    refusal = absl::ResourceExhaustedError(
        absl::StrFormat("%s runs %d steps already", identity_.task.ToString(), options_.steps_max));
  } else if (link->QueuedBytes() > options_.send_queue_bytes_max) {
    refusal = absl::ResourceExhaustedError(absl::StrFormat(
        "%d bytes wait for %s to take them", link->QueuedBytes(), link->peer().ToString()));
  }
  if (!refusal.ok()) {
    link->SendDone(step, {.status = refusal, .ticket = 0});
    return absl::OkStatus();
  }
  if (link->peer().is_client()) {
    clients_.OnRun(link, step, message);
    return absl::OkStatus();
  }
  const auto timeout =
      std::chrono::milliseconds(std::min(message.timeout_ms, ClientSteps::kTimeoutMsMax));
  auto running = worker_.Begin(step, message.plan, scheduler_.Now() + timeout);
  if (!running.ok()) {
    link->SendDone(step, {.status = running.status(), .ticket = 0});
    return absl::OkStatus();
  }
  worker_.Start(*running, /*feeds=*/{}, /*post=*/nullptr,
                [weak = std::weak_ptr(link), step](const executor::StepOutcome& outcome) {
                  if (const auto master = weak.lock())
                    master->SendDone(step, {.status = outcome.status, .ticket = outcome.ticket});
                });
  return absl::OkStatus();
}

absl::Status Server::OnDone(Link& link, const store::StepId& step, const DoneMessage& message) {
  master_.OnDone(link.peer().task, step, message.status, message.ticket);
  return absl::OkStatus();
}

absl::Status Server::OnAbort(Link& link, const store::StepId& step, const absl::Status& reason) {
  if (step.origin != link.peer().incarnation)
    return absl::InvalidArgumentError("an abort in another master's name");
  if (link.peer().is_client()) {
    clients_.OnAbort(link, step, reason);
  } else {
    worker_.AbortStep(step, reason);
  }
  return absl::OkStatus();
}

void Server::OnLinkRefused(const std::string& address, const absl::Status& reason) {
  // Who says nothing, a check that a port is open for one, is not worth a line.
  if (absl::IsUnavailable(reason) || absl::IsDeadlineExceeded(reason) || absl::IsCancelled(reason))
    return;
  const std::optional<std::uint64_t> unsaid = refusals_.Admit(scheduler_.Now());
  if (!unsaid) return;
  std::string line =
      absl::StrFormat("refused a connection from %s: %s", address, std::string(reason.message()));
  if (*unsaid > 0) absl::StrAppendFormat(&line, " (and %d more since the last line)", *unsaid);
  parts_.logger->Warning(line);
}

void Server::OnLinkDown(const std::shared_ptr<Link>& link, const absl::Status& reason) {
  const std::string who =
      link->peer().is_client() ? link->peer().ToString() : peers_.Describe(link->peer().task);
  const absl::Status lost = Annotate(reason, "lost the connection to " + who);
  if (absl::IsInvalidArgument(reason)) parts_.logger->Warning(std::string(lost.message()));
  if (link->peer().is_client()) return clients_.OnLinkDown(*link, lost);
  peers_.OnLinkDown(link);
  worker_.OnPeerLost(link->peer(), lost);
  master_.OnPeerLost(link->peer(), lost);
}

}  // namespace weir::runtime
