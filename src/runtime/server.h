// A task of a cluster: master and worker in one process, as the original has them.
//
//   control plane  rpc::TaskService    who am I, variables, plans, sessions of clients elsewhere
//   data plane     LinkSink            RUN, tensors, DONE, ABORT
//
// Server only wires the parts together; what they do is in their own files.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/line_limiter.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/scheduler.h"
#include "base/scoped_scheduler.h"
#include "cluster/cluster_spec.h"
#include "rpc/control_plane.h"
#include "runtime/client_steps.h"
#include "runtime/master.h"
#include "runtime/peers.h"
#include "runtime/worker.h"
#include "store/variable_store.h"
#include "tensor/buffer_pool.h"
#include "transport/connection.h"
#include "weir/session.h"

namespace weir::runtime {

struct ServerOptions {
  TaskConfig config;
  /// Part of the cluster's identity: two jobs of one spec do not mix.
  std::string cluster_name = "weir";
  /// The interface to listen on. A host that is not loopback needs `insecure`.
  std::string bind_host = "127.0.0.1";
  /// Host part of the data plane's address as told to peers; empty: the host of the task in the
  /// spec.
  std::string advertise_host;
  /// 0: any free port, told to peers by the control plane.
  int data_port = 0;
  /// Allows a bind that is not loopback: there is neither encryption nor authentication.
  bool insecure = false;
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds stop_timeout{5'000};
  /// Most bytes of one tensor from a peer.
  std::uint64_t tensor_bytes_max = std::uint64_t{1} << 40;
  /// Most bytes held for steps that have not begun here yet, or of feeds whose run has not come.
  std::size_t early_bytes_max = std::size_t{1} << 32;
  /// A peer that does not take what is sent to it gets no more steps beyond this.
  std::size_t send_queue_bytes_max = std::size_t{1} << 32;
  /// Idle receive buffers that are kept for reuse.
  std::size_t idle_buffer_bytes_max = std::size_t{4} << 30;
  /// Steps of others that may run here at the same time.
  std::uint64_t steps_max = 4096;
};

/// What a server runs on; not owned, except that the server holds the planes.
struct ServerParts {
  std::shared_ptr<transport::Transport> transport;
  std::shared_ptr<rpc::ControlPlane> control_plane;
  std::shared_ptr<Scheduler> scheduler;  // timers and short work
  std::shared_ptr<Scheduler> compute;    // programs
  std::shared_ptr<Logger> logger;
};

/// Thread-safe.
class Server final : public rpc::TaskService, public LinkSink {
 public:
  /// Starts to serve; returns when both planes listen. Errors: InvalidArgument for a bad
  /// configuration, FailedPrecondition for a bind that needs `insecure`, Unavailable (port taken,
  /// with address and errno).
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options, ServerParts parts);
  ~Server() override;

  const Identity& identity() const { return identity_; }
  /// host:port of the control plane, as listening.
  std::string control_address() const { return control_server_->Address(); }
  std::string data_address() const { return data_address_; }
  const ServerOptions& options() const { return options_; }
  /// Of the data plane, since the start.
  const Traffic& traffic() const { return traffic_; }
  /// The variables of this task.
  const store::VariableStore& variables() const { return store_; }
  const std::shared_ptr<Logger>& logger() const { return parts_.logger; }

  /// A session in this process. `graph` must outlive it.
  absl::StatusOr<Session> OpenSession(const Graph& graph, const SessionOptions& options = {});

  /// Forgets variables here and on every other task of the cluster that answers.
  absl::Status ResetContainers(const std::vector<std::string>& containers);

  /// Asks every other task of the cluster to end; one that is gone already is no error.
  void ShutdownOthers(const std::string& reason);

  /// Blocks until somebody asked this task to end (Shutdown, or RequestShutdown). Returns the
  /// reason.
  std::string AwaitShutdown();
  void RequestShutdown(const std::string& reason);

  /// Ends every step with Cancelled, closes every link, refuses new ones. Bounded by the stop
  /// deadline; idempotent.
  void Close();

  // rpc::TaskService
  absl::StatusOr<rpc::TaskStatus> GetStatus(const rpc::Caller& caller,
                                            bool with_variables) override;
  absl::Status Announce(const rpc::Caller& caller) override;
  absl::Status EnsureVariables(const rpc::Caller& caller, const GraphDef& variables,
                               bool initialize) override;
  absl::Status RegisterPlan(const rpc::Caller& caller, rpc::PlanRegistration registration) override;
  absl::Status ReleasePlans(const rpc::Caller& caller, std::uint64_t origin,
                            const std::vector<std::uint64_t>& plans) override;
  absl::Status Reset(const rpc::Caller& caller,
                     const std::vector<std::string>& containers) override;
  absl::Status Shutdown(const rpc::Caller& caller, const std::string& reason) override;
  absl::StatusOr<rpc::SessionReply> OpenSession(const rpc::Caller& caller,
                                                rpc::SessionRequest request) override;
  absl::StatusOr<rpc::PlanReply> MakePlan(const rpc::Caller& caller, std::uint64_t session,
                                          const graph::Signature& signature) override;
  absl::Status CloseSession(const rpc::Caller& caller, std::uint64_t session) override;

  // LinkSink
  void OnLinkUp(const std::shared_ptr<Link>& link) override;
  absl::StatusOr<Buffer> OnTensorPayload(Link& link, const store::StepId& step, std::uint32_t edge,
                                         const TensorHeader& header) override;
  absl::Status OnTensor(Link& link, const store::StepId& step, std::uint32_t edge,
                        Value value) override;
  absl::Status OnRun(const std::shared_ptr<Link>& link, const store::StepId& step,
                     const RunMessage& message) override;
  absl::Status OnDone(Link& link, const store::StepId& step, const DoneMessage& message) override;
  absl::Status OnAbort(Link& link, const store::StepId& step, const absl::Status& reason) override;
  void OnLinkDown(const std::shared_ptr<Link>& link, const absl::Status& reason) override;
  void OnLinkRefused(const std::string& address, const absl::Status& reason) override;

 private:
  Server(ServerOptions options, ServerParts parts);
  absl::Status Listen();
  /// Who answers at this task's own address, or what to do if nobody says: for a taken port.
  std::string WhoIsThere();
  absl::Status Check(const rpc::Caller& caller) const;
  void SweepNowAndThen();
  std::vector<TaskId> OtherTasks() const;

  const ServerOptions options_;
  const ServerParts parts_;
  const Identity identity_;
  const TimePoint started_;
  ScopedScheduler scheduler_;
  ScopedScheduler compute_;
  Traffic traffic_;
  BufferPool buffers_;
  store::VariableStore store_;
  Peers peers_;
  Worker worker_;
  Master master_;
  ClientSteps clients_;
  std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<rpc::ControlServer> control_server_;
  std::string data_address_;
  LineLimiter refusals_{std::chrono::seconds(1)};
  std::atomic<bool> closed_{false};
  Mutex shutdown_mutex_;
  CondVar shutdown_requested_;
  bool shutdown_ WEIR_GUARDED_BY(shutdown_mutex_) = false;
  std::string shutdown_reason_ WEIR_GUARDED_BY(shutdown_mutex_);
};

}  // namespace weir::runtime
