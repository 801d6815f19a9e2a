#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "cluster/device.h"
#include "graph/op_registry.h"
#include "runtime/active_step.h"
#include "runtime/gather.h"
#include "runtime/master.h"

namespace weir::runtime {
namespace {

/// REQUIRES: `device` is full, as the placer leaves it.
TaskId TaskOf(const std::string& device) {
  const auto spec = DeviceSpec::Parse(device);
  WEIR_CHECK(spec.ok() && spec->has_task());
  return spec->task_id();
}

/// The Variable nodes of a placed graph, by the task that owns them.
std::map<TaskId, GraphDef> VariablesByTask(const GraphDef& placed) {
  std::map<TaskId, GraphDef> by_task;
  for (const Node& node : placed.nodes) {
    if (node.op != "Variable") continue;
    GraphDef& variables = by_task[TaskOf(node.device)];
    variables.seed = placed.seed;
    variables.nodes.push_back(node);
    variables.nodes.back().inputs.clear();
  }
  return by_task;
}

std::map<TaskId, std::vector<graph::PartitionDef>> PartitionsByTask(graph::PartitionedGraph graph) {
  std::map<TaskId, std::vector<graph::PartitionDef>> by_task;
  for (graph::PartitionDef& partition : graph.partitions) {
    const TaskId task = TaskOf(partition.device);
    by_task[task].push_back(std::move(partition));
  }
  return by_task;
}

/// What each Feed node of the plan expects, by its index.
std::vector<OutputInfo> FeedInfos(const graph::PartitionedGraph& graph) {
  std::vector<OutputInfo> feeds(static_cast<std::size_t>(graph.num_feeds));
  for (const graph::PartitionDef& partition : graph.partitions) {
    for (const Node& node : partition.graph.nodes) {
      if (node.op != "Feed") continue;
      feeds[static_cast<std::size_t>(graph::AttrOr<std::int64_t>(node, "index", 0))] =
          node.outputs[0];
    }
  }
  return feeds;
}

template <typename Map>
std::vector<TaskId> RemoteTasks(const Map& by_task, const TaskId& self) {
  std::vector<TaskId> tasks;
  for (const auto& [task, unused] : by_task) {
    if (task != self) tasks.push_back(task);
  }
  return tasks;
}

absl::Status SessionClosed() {
  return absl::FailedPreconditionError("Session is closed.");
}

}  // namespace

MasterSession::MasterSession(Master* master, GraphDef placed,
                             std::map<std::int64_t, TensorFunction> functions, Settings settings,
                             std::map<TaskId, std::uint64_t> owners)
    : master_(master),
      placed_(std::move(placed)),
      functions_(std::move(functions)),
      settings_(settings),
      owners_(std::move(owners)) {}

absl::Status MasterSession::CheckOwners(const std::map<TaskId, std::uint64_t>& incarnations) const {
  for (const auto& [task, incarnation] : incarnations) {
    const auto owner = owners_.find(task);
    if (owner == owners_.end() || owner->second == incarnation) continue;
    return absl::AbortedError(master_->env_.peers->Describe(task) +
                              " was restarted since this session was opened, and its variables are "
                              "gone: a new session makes them anew");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<MasterSession>> Master::OpenSession(
    GraphDef graph, std::map<std::int64_t, TensorFunction> functions,
    const MasterSession::Settings& settings) {
  WEIR_RETURN_IF_ERROR(graph::Validate(graph, /*allow_internal=*/false));
  WEIR_ASSIGN_OR_RETURN(const graph::ShardMap shards, graph::ShardMapOf(graph));
  WEIR_ASSIGN_OR_RETURN(graph, graph::ApplyShardMap(std::move(graph), shards));
  graph::DeviceSet devices = graph::DeviceSet::FromCluster(*env_.cluster, env_.self.task);
  devices.soft_placement = settings.soft_placement;
  WEIR_RETURN_IF_ERROR(graph::PlaceGraph(graph, devices));
  const auto variables = VariablesByTask(graph);
  const std::vector<TaskId> remote = RemoteTasks(variables, env_.self.task);
  const TimePoint deadline = env_.scheduler->Now() + settings.start_timeout;
  WEIR_ASSIGN_OR_RETURN(auto owners, AwaitTasks(remote, deadline));
  if (const auto own = variables.find(env_.self.task); own != variables.end()) {
    WEIR_RETURN_IF_ERROR(env_.worker->EnsureVariables(own->second, settings.initialize));
  }
  WEIR_RETURN_IF_ERROR(Gather(
      *env_.scheduler, remote, deadline + env_.stop_timeout, [&](const TaskId& task, auto reply) {
        env_.peers->Control(task)->EnsureVariables(
            env_.peers->CallerTo(task), variables.at(task), settings.initialize,
            {.deadline = deadline, .wait_for_ready = false},
            [this, task, reply](const absl::Status& status) {
              reply(Annotate(status, "variables of " + env_.peers->Describe(task)));
            });
      }));
  return std::make_shared<MasterSession>(this, std::move(graph), std::move(functions), settings,
                                         std::move(owners));
}

std::shared_ptr<const MasterPlan> MasterSession::FindCached(const graph::Signature& signature) {
  const auto it = std::find_if(plans_.begin(), plans_.end(), [&](const CachedPlan& cached) {
    return cached.signature == signature;
  });
  if (it == plans_.end() || it->plan->stale) return nullptr;
  plans_.splice(plans_.begin(), plans_, it);
  return it->plan;
}

absl::StatusOr<std::shared_ptr<const MasterPlan>> MasterSession::MakePlan(
    const graph::Signature& signature) {
  MutexLock planning(planning_mutex_);
  {
    MutexLock lock(mutex_);
    if (closed_) return SessionClosed();
    if (auto cached = FindCached(signature)) return cached;
  }
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<const MasterPlan> plan, BuildPlan(signature));
  std::vector<std::shared_ptr<const MasterPlan>> forgotten;
  bool closed = false;
  {
    MutexLock lock(mutex_);
    closed = closed_;
    if (!closed) Keep(signature, plan, forgotten);
  }
  if (closed) {
    Forget({plan});
    return SessionClosed();
  }
  Forget(forgotten);
  return plan;
}

void MasterSession::Keep(const graph::Signature& signature,
                         const std::shared_ptr<const MasterPlan>& plan,
                         std::vector<std::shared_ptr<const MasterPlan>>& forgotten) {
  plans_.remove_if([&](const CachedPlan& cached) {
    const bool stale = cached.signature == signature || cached.plan->stale;
    if (stale) forgotten.push_back(cached.plan);
    return stale;
  });
  plans_.push_front({signature, plan});
  while (plans_.size() > static_cast<std::size_t>(std::max(1, settings_.max_plans))) {
    forgotten.push_back(plans_.back().plan);
    plans_.pop_back();
  }
}

absl::StatusOr<std::shared_ptr<const MasterPlan>> MasterSession::BuildPlan(
    const graph::Signature& signature) {
  const Master::Environment& env = master_->env_;
  WEIR_ASSIGN_OR_RETURN(graph::PartitionedGraph partitioned,
                        graph::MakePlan(placed_, signature, env.self.task));
  auto plan = std::make_shared<MasterPlan>();
  plan->number = master_->next_plan_.fetch_add(1);
  plan->feed_names = signature.feeds;
  plan->feeds = FeedInfos(partitioned);
  plan->num_fetches = partitioned.num_fetches;
  plan->dump = graph::DumpText(partitioned);
  auto by_task = PartitionsByTask(std::move(partitioned));
  plan->remote = RemoteTasks(by_task, env.self.task);
  plan->local = by_task.contains(env.self.task);
  const TimePoint deadline = env.scheduler->Now() + settings_.start_timeout;
  WEIR_ASSIGN_OR_RETURN(plan->incarnations, master_->AwaitTasks(plan->remote, deadline));
  WEIR_RETURN_IF_ERROR(CheckOwners(plan->incarnations));
  const auto registration = [&](const TaskId& task) {
    return rpc::PlanRegistration{.origin = env.self.incarnation,
                                 .master = env.self.task,
                                 .plan = plan->number,
                                 .partitions = by_task.at(task)};
  };
  if (plan->local)
    WEIR_RETURN_IF_ERROR(env.worker->RegisterPlan(registration(env.self.task), &functions_));
  absl::Status registered =
      (Gather(*env.scheduler, plan->remote, deadline + env.stop_timeout,
              [&](const TaskId& task, auto reply) {
                env.peers->Control(task)->RegisterPlan(
                    env.peers->CallerTo(task), registration(task),
                    {.deadline = deadline, .wait_for_ready = false},
                    [&env, task, reply](const absl::Status& status) {
                      reply(Annotate(status, "planning on " + env.peers->Describe(task)));
                    });
              }));
  if (registered.ok()) return plan;
  Forget({plan});  // on those tasks that have it
  return registered;
}

void MasterSession::Forget(const std::vector<std::shared_ptr<const MasterPlan>>& plans) {
  const Master::Environment& env = master_->env_;
  std::map<TaskId, std::vector<std::uint64_t>> by_task;
  for (const auto& plan : plans) {
    plan->stale = true;
    if (plan->local) env.worker->ReleasePlans(env.self.incarnation, {plan->number});
    for (const TaskId& task : plan->remote) by_task[task].push_back(plan->number);
  }
  // Nobody waits: a task that has gone needs no telling.
  const TimePoint deadline = env.scheduler->Now() + env.stop_timeout;
  for (const auto& [task, numbers] : by_task) {
    env.peers->Control(task)->ReleasePlans(env.peers->CallerTo(task), env.self.incarnation, numbers,
                                           {.deadline = deadline, .wait_for_ready = false},
                                           [](const absl::Status&) {});
  }
}

absl::Status MasterSession::closed() const {
  MutexLock lock(mutex_);
  return closed_ ? SessionClosed() : absl::OkStatus();
}

void MasterSession::Close() {
  std::vector<std::shared_ptr<const MasterPlan>> plans;
  {
    MutexLock lock(mutex_);
    if (std::exchange(closed_, true)) return;
    for (CachedPlan& cached : plans_) plans.push_back(std::move(cached.plan));
    plans_.clear();
  }
  master_->AbortSteps(
      [this](const Master::ActiveStep& step) { return step.session.get() == this; },
      absl::CancelledError("the step was ended by an explicit call to Session::Close()"));
  Forget(plans);
}

}  // namespace weir::runtime
