// A whole cluster in one process, on one thread, in virtual time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/sim_scheduler.h"
#include "cluster/cluster_spec.h"
#include "rpc/inproc/control_plane.h"
#include "runtime/remote_session.h"
#include "runtime/server.h"
#include "transport/inproc/network.h"

namespace weir::runtime {

/// Tasks are started and killed by name. The thread that calls Run (or any other blocking call)
/// pumps the cluster.
class TestCluster {
 public:
  explicit TestCluster(int ps, int workers, std::uint64_t seed = 1);
  ~TestCluster();

  /// Where the tasks that are started from now on write their lines; nowhere before.
  void LogTo(std::shared_ptr<Logger> logger) { logger_ = std::move(logger); }

  /// Starts every task of the spec.
  void StartAll();
  Server& Start(const TaskId& task);
  absl::StatusOr<std::unique_ptr<Server>> TryStart(const TaskId& task,
                                                   const std::string& cluster_name = "weir");
  /// Takes a task away without a goodbye: its links break, nobody listens at its address.
  void Kill(const TaskId& task);

  Server& worker(int index) { return *servers_.at({"worker", index}); }
  Server& ps(int index) { return *servers_.at({"ps", index}); }
  SimScheduler& scheduler() { return scheduler_; }
  transport::inproc::Network& network() { return network_; }
  const ClusterSpec& spec() const { return spec_; }
  std::string ControlAddress(const TaskId& task) const { return spec_.Address(task)->ToString(); }

  /// A session on the master of `task` from a client that is no task.
  absl::StatusOr<Session> Connect(const TaskId& task, const Graph& graph,
                                  const SessionOptions& options = {});

 private:
  static ClusterSpec MakeSpec(int ps, int workers);
  std::shared_ptr<Scheduler> SchedulerPointer();

  const ClusterSpec spec_;
  SimScheduler scheduler_;
  transport::inproc::Network network_;
  rpc::Network control_network_;
  std::shared_ptr<Logger> logger_ = Logger::Null();
  std::map<TaskId, std::unique_ptr<Server>> servers_;
};

}  // namespace weir::runtime
