// Whole plans run in one process, without a network: for tests.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "cluster/task.h"
#include "executor/step.h"
#include "graph/passes.h"
#include "store/variable_store.h"
#include "weir/graph.h"

namespace weir::executor {

/// graph::Signature, for designated initialisers.
struct Wanted {
  std::vector<std::string> feeds = {};
  std::vector<std::string> fetches = {};
  std::vector<std::string> targets = {};
};

struct TestPlan {
  graph::PartitionedGraph graph;
  std::vector<std::shared_ptr<const Program>> programs;  // by partition
};

/// One step on all partitions of a plan, with one rendezvous for all of them. What goes to another
/// task is copied, as a wire would.
class TestStep {
 public:
  using Post = std::function<void(std::function<void()>)>;

  /// `plan` outlives the step.
  TestStep(const TestPlan& plan, store::StepId id, std::vector<at::Tensor> feeds);
  ~TestStep();

  /// Called with every value that is sent, before it is delivered.
  std::function<void(const SendEdge&, const Value&)> on_send;

  void Start(const Post& post);
  StepRendezvous& rendezvous() { return *rendezvous_; }
  bool IsOver() const;
  void WaitUntilOver() const;

  // Once it is over. The first error of any partition; fetches by index; the ticket held.
  absl::Status status() const;
  std::vector<at::Tensor> fetches() const;
  std::uint64_t ticket() const;
  /// How often each partition has said that it is done; more than 1 is a bug.
  std::vector<int> done_calls() const;

 private:
  void Deliver(const std::string& from, const SendEdge& edge, Value value);

  const TestPlan& plan_;
  const store::StepId id_;
  const std::vector<at::Tensor> feeds_;
  const std::shared_ptr<StepRendezvous> rendezvous_ = std::make_shared<StepRendezvous>();
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<int> done_calls_ WEIR_GUARDED_BY(mutex_);
  std::vector<StepOutcome> outcomes_ WEIR_GUARDED_BY(mutex_);
};

/// Tasks with a store each.
class TestCluster {
 public:
  /// The first task is the session's.
  explicit TestCluster(std::vector<TaskId> tasks, int cpus_per_task = 1);

  /// Places, cuts and compiles, making the variables that are missing. Failures are the test's.
  TestPlan Plan(const Graph& graph, const Wanted& wanted);
  /// The same up to the partitions.
  absl::StatusOr<graph::PartitionedGraph> Cut(const Graph& graph, const Wanted& wanted);
  absl::StatusOr<std::shared_ptr<const Program>> Compile(const graph::PartitionDef& partition,
                                                         const Graph& graph);
  /// Makes and initialises every variable of `graph`.
  void Initialize(const Graph& graph);

  struct Result {
    absl::Status status;
    std::vector<at::Tensor> fetches;
    std::uint64_t ticket = 0;
  };
  /// One step, on this thread, in an order that the step's number decides.
  Result Run(const TestPlan& plan, std::vector<at::Tensor> feeds = {});
  /// Plan and Run.
  Result Run(const Graph& graph, const Wanted& wanted, std::vector<at::Tensor> feeds = {});

  store::Variable& variable(const std::string& name);
  at::Tensor ValueOf(const std::string& name);
  store::StepId NextStep() { return {kOrigin, ++last_step_}; }

 private:
  static constexpr std::uint64_t kOrigin = 77;

  absl::StatusOr<GraphDef> Place(const Graph& graph) const;
  void EnsureVariables(const GraphDef& placed, bool initialize);

  graph::DeviceSet devices_;
  std::map<TaskId, store::VariableStore> stores_;
  std::uint64_t last_step_ = 0;
};

/// The full name of a task's CPU.
std::string DeviceOf(const TaskId& task, int cpu = 0);

}  // namespace weir::executor
