#include "runtime/server.h"

#include <unistd.h>

#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "runtime/gather.h"
#include "runtime/local_session.h"
#include "runtime/task_status.h"
#include "tensor/dtype.h"

namespace weir::runtime {
namespace {

constexpr std::chrono::seconds kSweepEvery{1};
constexpr std::chrono::seconds kGreetingTimeout{5};
constexpr std::chrono::seconds kWhoIsThereTimeout{1};
constexpr std::chrono::seconds kIdleSessionTimeout{60};

absl::Status CheckBind(const ServerOptions& options) {
  const HostPort bind{.host = options.bind_host, .port = 0};
  if (bind.IsLoopback() || options.insecure) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s would listen on %s, where there is neither encryption nor "
                      "authentication: bind to loopback, or say --insecure",
                      options.config.task.ToString(), options.bind_host));
}

}  // namespace

Server::Server(ServerOptions options, ServerParts parts)
    : options_(std::move(options)),
      parts_(std::move(parts)),
      identity_{.cluster_id = options_.config.cluster.Id(options_.cluster_name),
                .task = options_.config.task,
                .incarnation = NewIncarnation()},
      started_(parts_.scheduler->Now()),
      scheduler_(*parts_.scheduler),
      compute_(*parts_.compute),
      buffers_({.idle_bytes_max = options_.idle_buffer_bytes_max}),
      peers_({.self = identity_,
              .cluster = &options_.config.cluster,
              .transport = parts_.transport.get(),
              .control_plane = parts_.control_plane.get(),
              .scheduler = &scheduler_,
              .sink = this,
              .traffic = &traffic_,
              .logger = parts_.logger,
              .connect_timeout = options_.connect_timeout}),
      worker_({.self = identity_,
               .peers = &peers_,
               .store = &store_,
               .compute = &compute_,
               .buffers = &buffers_,
               .early_bytes_max = options_.early_bytes_max,
               .tensor_bytes_max = options_.tensor_bytes_max}),
      master_({.self = identity_,
               .cluster = &options_.config.cluster,
               .peers = &peers_,
               .worker = &worker_,
               .scheduler = &scheduler_,
               .stop_timeout = options_.stop_timeout}),
      clients_({.master = &master_,
                .buffers = &buffers_,
                .scheduler = &scheduler_,
                .compute = &compute_,
                .feed_bytes_max = options_.early_bytes_max,
                .idle_session_timeout = kIdleSessionTimeout}) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options, ServerParts parts) {
  WEIR_RETURN_IF_ERROR(CheckBind(options));
  std::unique_ptr<Server> server(new Server(std::move(options), std::move(parts)));
  WEIR_RETURN_IF_ERROR(Annotate(server->Listen(), server->identity_.task.ToString()));
  server->SweepNowAndThen();
  server->peers_.AnnounceToAll();
  return server;
}

absl::Status Server::Listen() {
  WEIR_ASSIGN_OR_RETURN(const HostPort own, options_.config.cluster.Address(identity_.task));
  WEIR_ASSIGN_OR_RETURN(listener_, parts_.transport->Listen(
                                       options_.bind_host, options_.data_port,
                                       [this](std::shared_ptr<transport::Connection> connection) {
                                         Link::Await(std::move(connection), peers_.LinkContext(),
                                                     scheduler_.Now() + kGreetingTimeout);
                                       }));
  const HostPort data{.host = options_.advertise_host.empty() ? own.host : options_.advertise_host,
                      .port = listener_->Port()};
  data_address_ = data.ToString();
  auto served = parts_.control_plane->Serve(options_.bind_host, own.port, this);
  if (absl::IsUnavailable(served.status())) {
    return absl::UnavailableError(absl::StrCat(served.status().message(), "; ", WhoIsThere()));
  }
  WEIR_ASSIGN_OR_RETURN(control_server_, std::move(served));
  return absl::OkStatus();
}

std::string Server::WhoIsThere() {
  rpc::Caller stranger;  // asked as this task it would refuse its double
  stranger.from_incarnation = identity_.incarnation;
  const auto found = std::make_shared<rpc::TaskStatus>();
  const TimePoint deadline = scheduler_.Now() + kWhoIsThereTimeout;
  const absl::Status answer =
      Gather(scheduler_, {identity_.task}, deadline, [&](const TaskId& task, auto reply) {
        peers_.Control(task)->GetStatus(
            stranger, /*with_variables=*/false, {.deadline = deadline, .wait_for_ready = false},
            [found, reply](const absl::StatusOr<rpc::TaskStatus>& status) {
              if (status.ok()) *found = *status;
              reply(status.status());
            });
      });
  if (!answer.ok())
    return "end the program that has the port, or give the task another one in the cluster spec";
  return absl::StrFormat("%s runs there already, process %d, for %.1f s: was it started twice?",
                         found->task.ToString(), found->pid, found->uptime_s);
}

void Server::SweepNowAndThen() {
  scheduler_.PostAt(scheduler_.Now() + kSweepEvery, [this] {
    worker_.ExpireSteps(scheduler_.Now());
    clients_.CloseIdleSessions(scheduler_.Now());
    SweepNowAndThen();
  });
}

Server::~Server() {
  Close();
}

void Server::Close() {
  if (closed_.exchange(true)) return;
  const absl::Status reason = absl::CancelledError(identity_.task.ToString() + " is shutting down");
  if (listener_) listener_->Close();
  clients_.CloseAll();
  master_.Close(reason);
  worker_.Close(reason);
  peers_.Close(reason);
  parts_.control_plane->Close();  // what waits for other tasks waits no longer
  if (control_server_) control_server_->Close(options_.stop_timeout);
  parts_.transport->Close();
  parts_.transport->Join();
  compute_.Close();
  compute_.Join();
  scheduler_.Close();
  scheduler_.Join();
  RequestShutdown("closed");
}

absl::StatusOr<Session> Server::OpenSession(const Graph& graph, const SessionOptions& options) {
  WEIR_RETURN_IF_ERROR(graph.status());
  WEIR_ASSIGN_OR_RETURN(auto session, master_.OpenSession(graph.def(), graph.functions(),
                                                          {.initialize = options.initialize,
                                                           .soft_placement = options.soft_placement,
                                                           .start_timeout = options.start_timeout,
                                                           .max_plans = options.max_plans}));
  return MakeLocalSession(&master_, std::move(session), graph, options, &scheduler_);
}

absl::Status Server::ResetContainers(const std::vector<std::string>& containers) {
  worker_.Reset(containers);
  const TimePoint deadline = scheduler_.Now() + options_.connect_timeout;
  return Gather(scheduler_, OtherTasks(), deadline + options_.stop_timeout,
                [&](const TaskId& task, auto reply) {
                  peers_.Control(task)->Reset(
                      peers_.CallerTo(task), containers,
                      {.deadline = deadline, .wait_for_ready = false},
                      [this, task, reply](const absl::Status& status) {
                        reply(Annotate(status, "reset of " + peers_.Describe(task)));
                      });
                });
}

std::vector<TaskId> Server::OtherTasks() const {
  std::vector<TaskId> others = options_.config.cluster.AllTasks();
  std::erase(others, identity_.task);
  return others;
}

void Server::ShutdownOthers(const std::string& reason) {
  const TimePoint deadline = scheduler_.Now() + options_.stop_timeout;
  Gather(scheduler_, OtherTasks(), deadline + options_.stop_timeout,
         [&](const TaskId& task, auto reply) {
           peers_.Control(task)->Shutdown(peers_.CallerTo(task), reason,
                                          {.deadline = deadline, .wait_for_ready = false}, reply);
         })
      .IgnoreError();
}

std::string Server::AwaitShutdown() {
  MutexLock lock(shutdown_mutex_);
  while (!shutdown_) shutdown_requested_.Wait(shutdown_mutex_);
  return shutdown_reason_;
}

void Server::RequestShutdown(const std::string& reason) {
  MutexLock lock(shutdown_mutex_);
  if (!shutdown_) shutdown_reason_ = reason;
  shutdown_ = true;
  shutdown_requested_.NotifyAll();
}

}  // namespace weir::runtime
