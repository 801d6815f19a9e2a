// The other tasks of the cluster, as this task reaches them: a control-plane client and at most one
// link in use for each.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/scheduler.h"
#include "cluster/cluster_spec.h"
#include "rpc/control_plane.h"
#include "runtime/link.h"
#include "transport/connection.h"

namespace weir::runtime {

/// Thread-safe. The link in use for a peer is the first that comes up, whoever dialled it, and
/// stays in use until it goes down: so what this task sends to a peer keeps its order.
class Peers {
 public:
  struct Environment {
    Identity self;
    const ClusterSpec* cluster = nullptr;
    transport::Transport* transport = nullptr;
    rpc::ControlPlane* control_plane = nullptr;
    Scheduler* scheduler = nullptr;
    LinkSink* sink = nullptr;
    Traffic* traffic = nullptr;
    std::shared_ptr<Logger> logger;
    Duration connect_timeout{};
  };
  using Connected = std::function<void(absl::StatusOr<std::shared_ptr<Link>>)>;

  explicit Peers(Environment environment) : env_(std::move(environment)) {}

  /// A link to `task`: the one in use, or a new one. Asks the task's control plane where its data
  /// plane is, dials and greets. `done` is called exactly once, inside the call when a link is
  /// there. Errors name task, address and the time waited; Unavailable at once when nobody listens.
  void Connect(const TaskId& task, Connected done);

  /// Waits, until `deadline`, for `task` to answer on its control plane; logs a line that names it,
  /// its address and the time left at most every 5 s. `done` exactly once.
  void AwaitTask(const TaskId& task, TimePoint deadline,
                 std::function<void(absl::StatusOr<rpc::TaskStatus>)> done);

  /// The link in use, or null.
  std::shared_ptr<Link> Find(const TaskId& task) const;
  /// REQUIRES: `task` is in the cluster.
  std::shared_ptr<rpc::TaskClient> Control(const TaskId& task);
  /// The caller's part of a request to `task`.
  rpc::Caller CallerTo(const TaskId& task) const;

  /// From the sink, for each link that comes up or goes down. A link to another incarnation
  /// replaces the one in use.
  void OnLinkUp(const std::shared_ptr<Link>& link);
  void OnLinkDown(const std::shared_ptr<Link>& link);

  /// A task has told that it is up: whoever waits for it tries again now.
  void Poke(const TaskId& task);
  /// Tells all other tasks that this one is up; nobody waits for the answers.
  void AnnounceToAll();
  /// "worker:1 (host:port)".
  std::string Describe(const TaskId& task) const;
  Link::Context LinkContext() const;
  /// Fails what is being connected, closes every link with `reason`. Later calls of Connect fail.
  void Close(const absl::Status& reason);

 private:
  struct Peer {
    std::shared_ptr<rpc::TaskClient> control;
    std::shared_ptr<Link> link;
    bool connecting = false;
    std::vector<Connected> waiting;
  };
  struct Await;

  void Dial(const TaskId& task, TimePoint began);
  void FinishConnect(const TaskId& task, TimePoint began,
                     absl::StatusOr<std::shared_ptr<Link>> result);
  void AskUntilUp(const std::shared_ptr<Await>& await);
  void LogWaiting(const std::shared_ptr<Await>& await);
  Peer& PeerOf(const TaskId& task) WEIR_REQUIRES(mutex_);

  const Environment env_;
  mutable Mutex mutex_;
  absl::Status closed_ WEIR_GUARDED_BY(mutex_);
  std::map<TaskId, Peer> peers_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::runtime
