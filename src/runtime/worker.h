// A task's share of the steps: the plans registered with it, and the steps that run.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/scheduler.h"
#include "executor/program.h"
#include "executor/step.h"
#include "rendezvous/step_table.h"
#include "rpc/control_plane.h"
#include "runtime/peers.h"
#include "store/variable_store.h"
#include "tensor/buffer_pool.h"

namespace weir::runtime {

/// Thread-safe.
class Worker {
 public:
  struct Environment {
    Identity self;
    Peers* peers = nullptr;  // not owned, as all below
    store::VariableStore* store = nullptr;
    Scheduler* compute = nullptr;  // runs programs that are not small and that no driver runs
    BufferPool* buffers = nullptr;
    std::size_t early_bytes_max = 0;     // tensors held for steps that have not begun
    std::uint64_t tensor_bytes_max = 0;  // of one tensor whose shape the plan does not know
  };
  using Post = std::function<void(std::function<void()>)>;
  using Done = std::function<void(executor::StepOutcome)>;

  explicit Worker(Environment environment)
      : env_(std::move(environment)), steps_(env_.early_bytes_max) {}

  absl::Status EnsureVariables(const GraphDef& variables, bool initialize);

  /// Compiles the partitions. `functions` are those this process holds, or null; they must outlive
  /// the plan.
  absl::Status RegisterPlan(const rpc::PlanRegistration& registration,
                            const std::map<std::int64_t, TensorFunction>* functions);
  void ReleasePlans(std::uint64_t origin, const std::vector<std::uint64_t>& plans);
  /// Forgets the variables of the containers and every plan: whoever runs one is told to plan
  /// again.
  void Reset(const std::vector<std::string>& containers);

  /// This task's share of one step, from Begin until `done` is called.
  struct Running;

  /// Opens this task's share of a step: from here on its tensors are expected. The steps of one
  /// origin must begin in the order of their numbers. Aborted when the plan is not registered here
  /// (this task was restarted, or its containers reset). A step that still runs at `deadline` is
  /// ended by ExpireSteps.
  absl::StatusOr<std::shared_ptr<Running>> Begin(const store::StepId& id, std::uint64_t plan,
                                                 TimePoint deadline);
  /// Runs it. What is not small runs by `post`, or on the compute scheduler where `post` is null.
  /// `done` is called exactly once, after the last partition has ended.
  void Start(const std::shared_ptr<Running>& running, std::vector<at::Tensor> feeds, Post post,
             Done done);
  /// Ends the steps whose deadline has passed: those of a master that has vanished without a word.
  /// To be called now and then.
  void ExpireSteps(TimePoint now);
  void AbortStep(const store::StepId& id, const absl::Status& reason);

  /// A tensor from a peer: refused here, before its bytes are read, when the plan does not expect
  /// it.
  absl::StatusOr<Buffer> TensorBuffer(const store::StepId& id, std::uint32_t edge,
                                      const TensorHeader& header);
  absl::Status DeliverTensor(const store::StepId& id, std::uint32_t edge, Value value);

  /// A peer's link went down: ends the steps that need it, and only those.
  void OnPeerLost(const Identity& peer, const absl::Status& reason);
  /// A peer is up: plans of its former incarnations are of no use any more.
  void OnPeerUp(const Identity& peer);
  void Close(const absl::Status& reason);

  std::uint64_t steps_run() const { return steps_run_.load(std::memory_order_relaxed); }
  std::uint64_t steps_running() const;

 private:
  using PlanKey = std::pair<std::uint64_t, std::uint64_t>;  // origin, plan
  struct Plan;

  std::shared_ptr<const Plan> FindPlan(const PlanKey& key) const;
  std::shared_ptr<Running> FindRunning(const store::StepId& id) const;
  Post PostFor(const executor::Program& program, const Post& post) const;
  bool KnowsOrigin(std::uint64_t origin) const;
  void SendValue(const std::shared_ptr<Running>& running, const executor::SendEdge& edge,
                 Value value);
  void FinishPartition(const std::shared_ptr<Running>& running, executor::StepOutcome outcome);

  const Environment env_;
  StepTable steps_;
  std::atomic<std::uint64_t> steps_run_{0};
  mutable Mutex mutex_;
  std::map<PlanKey, std::shared_ptr<const Plan>> plans_ WEIR_GUARDED_BY(mutex_);
  absl::flat_hash_map<store::StepId, std::shared_ptr<Running>> running_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::runtime
