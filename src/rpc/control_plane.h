// The control plane as plain structs: what tasks and clients ask of each other outside the steps.
// gRPC (rpc/grpc) and the in-process twin of tests (rpc/inproc) implement it; nothing of protobuf
// crosses this border.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/scheduler.h"
#include "cluster/task.h"
#include "graph/passes.h"
#include "weir/graph.h"

namespace weir::rpc {

/// Who calls whom; on every request, and checked by the task that answers: FailedPrecondition for
/// another cluster or another task than the one that answers ("expected worker:0, found worker:1"),
/// Aborted for an incarnation that is no longer the one that lives.
struct Caller {
  std::uint64_t cluster_id = 0;  // 0: a client that does not know it
  TaskId from;                   // empty job: a client that is no task
  std::uint64_t from_incarnation = 0;
  TaskId to;                         // empty job: whoever listens there
  std::uint64_t to_incarnation = 0;  // 0: any
  bool operator==(const Caller&) const = default;
};

struct StalenessStatus {
  std::uint64_t count = 0, p50 = 0, p99 = 0, max = 0;
  double mean = 0;
  bool operator==(const StalenessStatus&) const = default;
};

struct VariableStatus {
  std::string name;
  std::string container;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
  std::uint64_t version = 0;  // updates applied, the initial value being version 0
  bool initialized = false;
  bool trainable = true;
  StalenessStatus staleness;
  bool operator==(const VariableStatus&) const = default;
};

struct TaskStatus {
  std::uint64_t cluster_id = 0;
  TaskId task;
  std::uint64_t incarnation = 0;
  std::string data_address;  // "host:port" of the data plane
  std::string version;       // of Weir
  std::int64_t pid = 0;
  double uptime_s = 0;
  std::uint64_t steps_run = 0;  // partitions of steps this task has finished
  std::uint64_t steps_running = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;  // of the data plane
  std::vector<VariableStatus> variables;      // only when asked for
  bool operator==(const TaskStatus&) const = default;
};

/// One task's share of a plan.
struct PlanRegistration {
  std::uint64_t origin = 0;  // incarnation of the master that will run it
  TaskId master;  // where that master is; empty job when it serves a client without a task's name
  std::uint64_t plan = 0;  // number of the plan at that master
  std::vector<graph::PartitionDef> partitions;
};

struct SessionRequest {
  GraphDef graph;
  bool initialize = true;
  bool soft_placement = false;
  std::int64_t start_timeout_ms = 60'000;
  std::string cluster_name;
};

struct SessionReply {
  std::uint64_t session = 0;
  std::string data_address;  // of the task whose master keeps the session
  std::uint64_t incarnation = 0;
  bool operator==(const SessionReply&) const = default;
};

struct PlanReply {
  std::uint64_t plan = 0;
  std::string dump;  // graph::DumpText of the plan
  int num_fetches = 0;
  bool operator==(const PlanReply&) const = default;
};

/// What a task answers; implemented by runtime/server. Called on threads of the control plane,
/// several at a time; may block up to the deadlines its requests carry.
class TaskService {
 public:
  virtual ~TaskService() = default;
  virtual absl::StatusOr<TaskStatus> GetStatus(const Caller& caller, bool with_variables) = 0;
  /// A task that has come up tells those who may be waiting for it.
  virtual absl::Status Announce(const Caller& caller) = 0;
  /// Makes the variables of these Variable nodes (and with `initialize`, initialises those that are
  /// not).
  virtual absl::Status EnsureVariables(const Caller& caller, const GraphDef& variables,
                                       bool initialize) = 0;
  virtual absl::Status RegisterPlan(const Caller& caller, PlanRegistration registration) = 0;
  virtual absl::Status ReleasePlans(const Caller& caller, std::uint64_t origin,
                                    const std::vector<std::uint64_t>& plans) = 0;
  virtual absl::Status Reset(const Caller& caller, const std::vector<std::string>& containers) = 0;
  /// The task is to end; returns before it does.
  virtual absl::Status Shutdown(const Caller& caller, const std::string& reason) = 0;

  virtual absl::StatusOr<SessionReply> OpenSession(const Caller& caller,
                                                   SessionRequest request) = 0;
  virtual absl::StatusOr<PlanReply> MakePlan(const Caller& caller, std::uint64_t session,
                                             const graph::Signature& signature) = 0;
  virtual absl::Status CloseSession(const Caller& caller, std::uint64_t session) = 0;
};

struct CallOptions {
  TimePoint deadline;
  /// true: keep trying to reach the task until the deadline (start order does not matter); false:
  /// Unavailable at once when nobody listens there.
  bool wait_for_ready = false;
};

template <typename T>
using Reply = std::function<void(absl::StatusOr<T>)>;
using StatusReply = std::function<void(absl::Status)>;

/// Calls one task. Methods never block; the reply is called exactly once, on a thread of the
/// control plane, never inside the call, and must not block for long. A call outlives its client.
/// Errors: Unavailable (nobody there), DeadlineExceeded, InvalidArgument for what cannot travel (an
/// address that is none, a tensor of a type without a code), or what the service returned.
class TaskClient {
 public:
  virtual ~TaskClient() = default;
  virtual void GetStatus(const Caller&, bool with_variables, const CallOptions&,
                         Reply<TaskStatus>) = 0;
  virtual void Announce(const Caller&, const CallOptions&, StatusReply) = 0;
  virtual void EnsureVariables(const Caller&, const GraphDef& variables, bool initialize,
                               const CallOptions&, StatusReply) = 0;
  virtual void RegisterPlan(const Caller&, const PlanRegistration&, const CallOptions&,
                            StatusReply) = 0;
  virtual void ReleasePlans(const Caller&, std::uint64_t origin,
                            const std::vector<std::uint64_t>& plans, const CallOptions&,
                            StatusReply) = 0;
  virtual void Reset(const Caller&, const std::vector<std::string>& containers, const CallOptions&,
                     StatusReply) = 0;
  virtual void Shutdown(const Caller&, const std::string& reason, const CallOptions&,
                        StatusReply) = 0;
  virtual void OpenSession(const Caller&, const SessionRequest&, const CallOptions&,
                           Reply<SessionReply>) = 0;
  virtual void MakePlan(const Caller&, std::uint64_t session, const graph::Signature&,
                        const CallOptions&, Reply<PlanReply>) = 0;
  virtual void CloseSession(const Caller&, std::uint64_t session, const CallOptions&,
                            StatusReply) = 0;
  /// Makes a call that waits for the task to come up try again now.
  virtual void Poke() = 0;
};

class ControlServer {
 public:
  virtual ~ControlServer() = default;
  virtual std::string Address() const = 0;
  virtual int Port() const = 0;
  /// Refuses new calls, cancels those that outlive `grace` (they get Unavailable), returns within
  /// `grace` and a little. A method of the service may still be running then: the destructor waits
  /// for it.
  virtual void Close(Duration grace) = 0;
};

/// A kind of control plane. Thread-safe.
class ControlPlane {
 public:
  /// Closes.
  virtual ~ControlPlane() = default;
  /// Ends the calls of its clients that are in flight: they are answered with Cancelled, as is
  /// every later call. When it returns no reply is running, and only those of later calls will.
  /// Servers are left alone. May be called again; not by a reply.
  virtual void Close() = 0;
  /// Serves `service` (not owned, outlives the server) at host:port (0: any). Unavailable with
  /// address and errno text when the port is taken; InvalidArgument for a bad address.
  virtual absl::StatusOr<std::unique_ptr<ControlServer>> Serve(const std::string& host, int port,
                                                               TaskService* service) = 0;
  /// A client for "host:port"; connects when first used.
  virtual std::shared_ptr<TaskClient> NewClient(const std::string& address) = 0;
};

}  // namespace weir::rpc
