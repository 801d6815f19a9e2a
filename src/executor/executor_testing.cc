#include "executor/executor_testing.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/sim_scheduler.h"
#include "base/status.h"
#include "cluster/device.h"

namespace weir::executor {
namespace {

TaskId TaskOf(const std::string& device) {
  return DeviceSpec::Parse(device).value().task_id();
}

}  // namespace

std::string DeviceOf(const TaskId& task, int cpu) {
  return DeviceSpec::FullCpu(task, cpu).ToString();
}

TestStep::TestStep(const TestPlan& plan, store::StepId id, std::vector<at::Tensor> feeds)
    : plan_(plan),
      id_(id),
      feeds_(std::move(feeds)),
      done_calls_(plan.programs.size(), 0),
      outcomes_(plan.programs.size()) {}

TestStep::~TestStep() = default;

void TestStep::Start(const Post& post) {
  for (std::size_t i = 0; i < plan_.programs.size(); ++i) {
    StepEnvironment environment;
    environment.id = id_;
    environment.rendezvous = rendezvous_;
    environment.post = post;
    environment.feeds = feeds_;
    environment.send = [this, from = plan_.programs[i]->device()](const SendEdge& edge,
                                                                  Value value) {
      Deliver(from, edge, std::move(value));
    };
    StartStep(plan_.programs[i], std::move(environment), [this, i](StepOutcome outcome) {
      MutexLock lock(mutex_);
      ++done_calls_[i];
      outcomes_[i] = std::move(outcome);
      changed_.NotifyAll();
    });
  }
}

void TestStep::Deliver(const std::string& from, const SendEdge& edge, Value value) {
  if (on_send) on_send(edge, value);
  if (value.tensor.defined() && TaskOf(from) != TaskOf(edge.to_device)) {
    value.tensor = value.tensor.clone();
  }
  const absl::Status put = rendezvous_->Put(edge.edge, std::move(value));
  EXPECT_TRUE(put.ok() || put == rendezvous_->status()) << put;
}

bool TestStep::IsOver() const {
  MutexLock lock(mutex_);
  for (const int calls : done_calls_) {
    if (calls == 0) return false;
  }
  return true;
}

void TestStep::WaitUntilOver() const {
  while (!IsOver()) {
    MutexLock lock(mutex_);
    changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + std::chrono::milliseconds(10));
  }
}

absl::Status TestStep::status() const {
  MutexLock lock(mutex_);
  for (const StepOutcome& outcome : outcomes_) WEIR_RETURN_IF_ERROR(outcome.status);
  return absl::OkStatus();
}

std::vector<at::Tensor> TestStep::fetches() const {
  std::vector<at::Tensor> fetches(static_cast<std::size_t>(plan_.graph.num_fetches));
  MutexLock lock(mutex_);
  for (const StepOutcome& outcome : outcomes_) {
    for (const auto& [index, tensor] : outcome.fetches) {
      fetches[static_cast<std::size_t>(index)] = tensor;
    }
  }
  return fetches;
}

std::uint64_t TestStep::ticket() const {
  MutexLock lock(mutex_);
  std::uint64_t ticket = 0;
  for (const StepOutcome& outcome : outcomes_) ticket = std::max(ticket, outcome.ticket);
  return ticket;
}

std::vector<int> TestStep::done_calls() const {
  MutexLock lock(mutex_);
  return done_calls_;
}

TestCluster::TestCluster(std::vector<TaskId> tasks, int cpus_per_task) {
  devices_.session_task = tasks.front();
  for (const TaskId& task : tasks) {
    stores_[task];
    for (int cpu = 0; cpu < cpus_per_task; ++cpu) {
      devices_.devices.push_back(DeviceSpec::FullCpu(task, cpu));
    }
  }
}

absl::StatusOr<GraphDef> TestCluster::Place(const Graph& graph) const {
  WEIR_RETURN_IF_ERROR(graph.status());
  GraphDef placed = graph.def();
  WEIR_RETURN_IF_ERROR(graph::PlaceGraph(placed, devices_));
  return placed;
}

void TestCluster::EnsureVariables(const GraphDef& placed, bool initialize) {
  for (const Node& node : placed.nodes) {
    if (node.op != "Variable") continue;
    const TaskId task = TaskOf(node.device);
    const auto def = VariableDefFromNode(node, placed.seed, task.job);
    ASSERT_TRUE(def.ok()) << def.status();
    const auto variable = stores_.at(task).Ensure(*def);
    ASSERT_TRUE(variable.ok()) << variable.status();
    if (!initialize) continue;
    ASSERT_TRUE((*variable)->Initialize().ok());
  }
}

void TestCluster::Initialize(const Graph& graph) {
  const auto placed = Place(graph);
  ASSERT_TRUE(placed.ok()) << placed.status();
  EnsureVariables(*placed, /*initialize=*/true);
}

absl::StatusOr<graph::PartitionedGraph> TestCluster::Cut(const Graph& graph, const Wanted& wanted) {
  WEIR_ASSIGN_OR_RETURN(const GraphDef placed, Place(graph));
  EnsureVariables(placed, /*initialize=*/false);
  return graph::MakePlan(placed, {wanted.feeds, wanted.fetches, wanted.targets},
                         devices_.session_task);
}

absl::StatusOr<std::shared_ptr<const Program>> TestCluster::Compile(
    const graph::PartitionDef& partition, const Graph& graph) {
  const TaskId task = TaskOf(partition.device);
  CompileEnvironment environment;
  environment.store = &stores_.at(task);
  environment.functions = &graph.functions();
  environment.default_container = task.job;
  return Program::Compile(partition, environment);
}

TestPlan TestCluster::Plan(const Graph& graph, const Wanted& wanted) {
  TestPlan plan;
  auto cut = Cut(graph, wanted);
  EXPECT_TRUE(cut.ok()) << cut.status();
  if (!cut.ok()) return plan;
  plan.graph = *std::move(cut);
  for (const graph::PartitionDef& partition : plan.graph.partitions) {
    auto program = Compile(partition, graph);
    EXPECT_TRUE(program.ok()) << program.status();
    if (program.ok()) plan.programs.push_back(*std::move(program));
  }
  return plan;
}

TestCluster::Result TestCluster::Run(const TestPlan& plan, std::vector<at::Tensor> feeds) {
  const store::StepId id = NextStep();
  SimScheduler scheduler(id.step);
  TestStep step(plan, id, std::move(feeds));
  step.Start([&](std::function<void()> work) { scheduler.Post(std::move(work)); });
  scheduler.RunUntilIdle();
  EXPECT_TRUE(step.IsOver());
  EXPECT_EQ(step.done_calls(), std::vector<int>(plan.programs.size(), 1));
  EXPECT_TRUE(!step.status().ok() || step.rendezvous().held() == 0);
  return {step.status(), step.fetches(), step.ticket()};
}

TestCluster::Result TestCluster::Run(const Graph& graph, const Wanted& wanted,
                                     std::vector<at::Tensor> feeds) {
  return Run(Plan(graph, wanted), std::move(feeds));
}

store::Variable& TestCluster::variable(const std::string& name) {
  for (auto& [task, store] : stores_) {
    for (const auto& variable : store.All()) {
      if (variable->def().name == name) return *variable;
    }
  }
  ADD_FAILURE() << "no variable " << name;
  std::abort();
}

at::Tensor TestCluster::ValueOf(const std::string& name) {
  return variable(name).ReadCopy().value().tensor;
}

}  // namespace weir::executor
