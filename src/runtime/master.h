// The master of a task: plans the steps of the sessions that were opened on it, and runs them.
//
// A plan is made once per signature: pruned, differentiated, partitioned, and registered with each
// task it needs over the control plane. After that a step costs one RUN for each remote task, the
// tensors, and one DONE.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/scheduler.h"
#include "graph/passes.h"
#include "runtime/peers.h"
#include "runtime/worker.h"
#include "weir/graph.h"

namespace weir::runtime {

/// A signature's plan, as its master knows it. Immutable but for `stale`.
struct MasterPlan {
  std::uint64_t number = 0;
  std::vector<TaskId> remote;                    // tasks that run a share of it, this one aside
  std::map<TaskId, std::uint64_t> incarnations;  // of the remote tasks, when it was registered
  bool local = false;                            // this task runs a share of it
  std::vector<std::string> feed_names;
  std::vector<OutputInfo> feeds;
  int num_fetches = 0;
  std::string dump;
  /// A task it was registered with has lost it: it must be made anew.
  mutable std::atomic<bool> stale{false};
};

struct StepResult {
  std::vector<at::Tensor> fetches;
  std::uint64_t ticket = 0;
};

class Master;

/// A graph that was placed and whose variables exist. Thread-safe. Close() it before the master
/// goes.
class MasterSession {
 public:
  struct Settings {
    bool initialize = true;
    bool soft_placement = false;
    Duration start_timeout{};
    int max_plans = 64;
  };

  /// `owners`: the other tasks that own variables of the graph, and their incarnations.
  MasterSession(Master* master, GraphDef placed, std::map<std::int64_t, TensorFunction> functions,
                Settings settings, std::map<TaskId, std::uint64_t> owners);

  /// The plan of `signature`; made when it is missing, which blocks while tasks it needs are
  /// awaited (start deadline) and told.
  absl::StatusOr<std::shared_ptr<const MasterPlan>> MakePlan(const graph::Signature& signature);

  /// Ends the session's steps with Cancelled and lets the tasks forget its plans. Never blocks;
  /// idempotent.
  void Close();
  absl::Status closed() const;

 private:
  friend class Master;
  struct CachedPlan {
    graph::Signature signature;
    std::shared_ptr<const MasterPlan> plan;
  };

  std::shared_ptr<const MasterPlan> FindCached(const graph::Signature& signature)
      WEIR_REQUIRES(mutex_);
  absl::StatusOr<std::shared_ptr<const MasterPlan>> BuildPlan(const graph::Signature& signature);
  /// Aborted when an owner is no longer the one that has the session's variables.
  absl::Status CheckOwners(const std::map<TaskId, std::uint64_t>& incarnations) const;
  /// Puts a plan into the cache; those that must leave it for that are added to `forgotten`.
  void Keep(const graph::Signature& signature, const std::shared_ptr<const MasterPlan>& plan,
            std::vector<std::shared_ptr<const MasterPlan>>& forgotten) WEIR_REQUIRES(mutex_);
  /// Tells every task of the plans that they are over; a session that still holds one makes it
  /// anew.
  void Forget(const std::vector<std::shared_ptr<const MasterPlan>>& plans);

  Master* const master_;
  const GraphDef placed_;
  const std::map<std::int64_t, TensorFunction> functions_;
  const Settings settings_;
  const std::map<TaskId, std::uint64_t> owners_;
  Mutex planning_mutex_;  // one plan is made at a time; taken before mutex_
  mutable Mutex mutex_;
  bool closed_ WEIR_GUARDED_BY(mutex_) = false;
  std::list<CachedPlan> plans_ WEIR_GUARDED_BY(mutex_);  // used last first
};

/// Thread-safe.
class Master {
 public:
  struct Environment {
    Identity self;
    const ClusterSpec* cluster = nullptr;  // not owned, as all below
    Peers* peers = nullptr;
    Worker* worker = nullptr;
    Scheduler* scheduler = nullptr;
    Duration stop_timeout{};
  };
  using StepDone = std::function<void(absl::StatusOr<StepResult>)>;
  struct ActiveStep;

  explicit Master(Environment environment) : env_(std::move(environment)) {}

  /// Places the graph, waits for the tasks that own its variables and has them made. Blocks.
  absl::StatusOr<std::shared_ptr<MasterSession>> OpenSession(
      GraphDef graph, std::map<std::int64_t, TensorFunction> functions,
      const MasterSession::Settings& settings);

  /// Runs one step and blocks until it has ended; the local share runs on the calling thread, by
  /// `driver`.
  absl::StatusOr<StepResult> RunStep(const std::shared_ptr<MasterSession>& session,
                                     const std::shared_ptr<const MasterPlan>& plan,
                                     std::vector<at::Tensor> feeds, TimePoint deadline,
                                     const std::shared_ptr<Driver>& driver);

  /// Links to every remote task of the plan; blocks. Aborted when one was restarted since the plan
  /// was made.
  absl::Status ConnectAll(const MasterPlan& plan, TimePoint deadline);

  /// The same as RunStep for a client elsewhere: returns at once, the local share runs on the
  /// compute scheduler, `done` is called exactly once. The returned step may be given to Abort.
  std::shared_ptr<ActiveStep> StartStep(const std::shared_ptr<MasterSession>& session,
                                        const std::shared_ptr<const MasterPlan>& plan,
                                        std::vector<at::Tensor> feeds, TimePoint deadline,
                                        Worker::Post post, StepDone done);
  void Abort(const std::shared_ptr<ActiveStep>& step, const absl::Status& reason);

  /// A remote task has finished its share.
  void OnDone(const TaskId& task, const store::StepId& id, const absl::Status& status,
              std::uint64_t ticket);
  void OnPeerLost(const Identity& peer, const absl::Status& reason);
  /// Ends every step with `reason`; later ones end at once.
  void Close(const absl::Status& reason);

 private:
  friend class MasterSession;

  std::shared_ptr<ActiveStep> FindStep(std::uint64_t number) const;
  absl::StatusOr<std::map<TaskId, std::uint64_t>> AwaitTasks(const std::vector<TaskId>& tasks,
                                                             TimePoint deadline);
  absl::Status SendRuns(ActiveStep& step, const RunMessage& run) WEIR_REQUIRES(mutex_);
  void FinishIfOver(const std::shared_ptr<ActiveStep>& step);
  void AbortSteps(const std::function<bool(const ActiveStep&)>& concerns,
                  const absl::Status& reason);
  std::string DescribeMissing(const std::shared_ptr<ActiveStep>& step) const;

  const Environment env_;
  std::atomic<std::uint64_t> next_plan_{1};
  mutable Mutex mutex_;
  absl::Status closed_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t next_step_ WEIR_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<std::uint64_t, std::shared_ptr<ActiveStep>> active_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::runtime
