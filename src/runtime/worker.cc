#include "runtime/worker.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "cluster/device.h"
#include "graph/op_registry.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace weir::runtime {
namespace {

absl::StatusOr<TaskId> TaskOfDevice(const std::string& device) {
  WEIR_ASSIGN_OR_RETURN(const DeviceSpec spec, DeviceSpec::Parse(device));
  if (!spec.has_task())
    return absl::InvalidArgumentError(absl::StrFormat("'%s' names no task", device));
  return spec.task_id();
}

/// Does what came fit what the plan says of the edge?
absl::Status CheckExpected(const executor::RecvEdge& expected, const TensorHeader& header) {
  if (header.dtype == at::ScalarType::Undefined) return absl::OkStatus();  // absent, or a signal
  if (!expected.control && header.dtype == expected.dtype &&
      ShapeAllows(expected.shape, header.dims)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("edge %d from %s: a tensor %s%s where the plan expects %s%s", expected.edge,
                      expected.from_device, DtypeName(header.dtype), ShapeToString(header.dims),
                      DtypeName(expected.dtype), ShapeToString(expected.shape)));
}

}  // namespace

struct Worker::Plan {
  TaskId master;
  std::vector<std::shared_ptr<const executor::Program>> programs;
  absl::flat_hash_map<std::uint32_t, executor::RecvEdge> expected;
  absl::flat_hash_map<std::uint32_t, TaskId> remote;  // edges that leave this task
  std::set<TaskId> peers;  // tasks a step of it exchanges tensors with, and its master
};

struct Worker::Running {
  store::StepId id;
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<StepRendezvous> rendezvous;
  TimePoint deadline;
  Done done;
  Mutex mutex;
  std::size_t partitions_left WEIR_GUARDED_BY(mutex) = 0;
  executor::StepOutcome outcome WEIR_GUARDED_BY(mutex);
};

absl::Status Worker::EnsureVariables(const GraphDef& variables, bool initialize) {
  for (const Node& node : variables.nodes) {
    if (node.op != "Variable")
      return absl::InvalidArgumentError("'" + node.name + "' is no variable");
    WEIR_ASSIGN_OR_RETURN(const store::VariableDef def,
                          executor::VariableDefFromNode(node, variables.seed, env_.self.task.job));
    WEIR_ASSIGN_OR_RETURN(const auto variable, env_.store->Ensure(def));
    if (!initialize) continue;
    WEIR_RETURN_IF_ERROR(Annotate(variable->Initialize(), env_.self.task.ToString()));
  }
  return absl::OkStatus();
}

absl::Status Worker::RegisterPlan(const rpc::PlanRegistration& registration,
                                  const std::map<std::int64_t, TensorFunction>* functions) {
  auto plan = std::make_shared<Plan>();
  plan->master = registration.master;
  if (!plan->master.job.empty() && plan->master != env_.self.task) plan->peers.insert(plan->master);
  const executor::CompileEnvironment environment = {
      .store = env_.store, .functions = functions, .default_container = env_.self.task.job};
  for (const graph::PartitionDef& partition : registration.partitions) {
    WEIR_ASSIGN_OR_RETURN(const TaskId task, TaskOfDevice(partition.device));
    if (task != env_.self.task) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "a partition for '%s' was sent to %s", partition.device, env_.self.task.ToString()));
    }
    WEIR_ASSIGN_OR_RETURN(auto program, executor::Program::Compile(partition, environment));
    for (const executor::SendEdge& send : program->sends()) {
      WEIR_ASSIGN_OR_RETURN(const TaskId to, TaskOfDevice(send.to_device));
      if (to == env_.self.task) continue;
      plan->remote.emplace(send.edge, to);
      plan->peers.insert(to);
    }
    for (const executor::RecvEdge& recv : program->recvs()) {
      WEIR_ASSIGN_OR_RETURN(const TaskId from, TaskOfDevice(recv.from_device));
      if (from != env_.self.task) plan->peers.insert(from);
      plan->expected.emplace(recv.edge, recv);
    }
    plan->programs.push_back(std::move(program));
  }
  MutexLock lock(mutex_);
  plans_[{registration.origin, registration.plan}] = std::move(plan);
  return absl::OkStatus();
}

void Worker::ReleasePlans(std::uint64_t origin, const std::vector<std::uint64_t>& plans) {
  MutexLock lock(mutex_);
  for (const std::uint64_t plan : plans) plans_.erase({origin, plan});
}

void Worker::Reset(const std::vector<std::string>& containers) {
  env_.store->Reset(containers);
  MutexLock lock(mutex_);
  plans_.clear();
}

std::shared_ptr<const Worker::Plan> Worker::FindPlan(const PlanKey& key) const {
  MutexLock lock(mutex_);
  const auto it = plans_.find(key);
  return it == plans_.end() ? nullptr : it->second;
}

std::shared_ptr<Worker::Running> Worker::FindRunning(const store::StepId& id) const {
  MutexLock lock(mutex_);
  const auto it = running_.find(id);
  return it == running_.end() ? nullptr : it->second;
}

bool Worker::KnowsOrigin(std::uint64_t origin) const {
  MutexLock lock(mutex_);
  const auto it = plans_.lower_bound({origin, 0});
  return it != plans_.end() && it->first.first == origin;
}

absl::StatusOr<std::shared_ptr<Worker::Running>> Worker::Begin(const store::StepId& id,
                                                               std::uint64_t plan_number,
                                                               TimePoint deadline) {
  auto running = std::make_shared<Running>();
  running->id = id;
  running->deadline = deadline;
  running->plan = FindPlan({id.origin, plan_number});
  if (!running->plan) {
    return absl::AbortedError(
        absl::StrFormat("%s does not know plan %d: it was restarted, or its containers were reset",
                        env_.self.task.ToString(), plan_number));
  }
  WEIR_ASSIGN_OR_RETURN(running->rendezvous, steps_.Begin(id));
  {
    MutexLock lock(running->mutex);
    running->partitions_left = running->plan->programs.size();
  }
  MutexLock lock(mutex_);
  running_[id] = running;
  return running;
}

void Worker::Start(const std::shared_ptr<Running>& running, std::vector<at::Tensor> feeds,
                   Post post, Done done) {
  running->done = std::move(done);
  for (const auto& program : running->plan->programs) {
    executor::StepEnvironment environment;
    environment.id = running->id;
    environment.rendezvous = running->rendezvous;
    environment.feeds = feeds;
    environment.send = [this, running](const executor::SendEdge& edge, Value value) {
      SendValue(running, edge, std::move(value));
    };
    environment.post = PostFor(*program, post);
    executor::StartStep(program, std::move(environment),
                        [this, running](executor::StepOutcome outcome) {
                          FinishPartition(running, std::move(outcome));
                        });
  }
}

Worker::Post Worker::PostFor(const executor::Program& program, const Post& post) const {
  if (program.is_small()) return [](std::function<void()> work) { work(); };
  if (post) return post;
  return [compute = env_.compute](std::function<void()> work) { compute->Post(std::move(work)); };
}

void Worker::SendValue(const std::shared_ptr<Running>& running, const executor::SendEdge& edge,
                       Value value) {
  const auto remote = running->plan->remote.find(edge.edge);
  if (remote == running->plan->remote.end()) {
    const absl::Status status = running->rendezvous->Put(edge.edge, std::move(value));
    if (!status.ok()) running->rendezvous->Abort(status);
    return;
  }
  const TaskId& task = remote->second;
  if (const auto link = env_.peers->Find(task))
    return link->SendTensor(running->id, edge.edge, value);
  env_.peers->Connect(task, [running, edge = edge.edge,
                             value = std::move(value)](absl::StatusOr<std::shared_ptr<Link>> link) {
    if (!link.ok()) return running->rendezvous->Abort(link.status());
    (*link)->SendTensor(running->id, edge, value);
  });
}

void Worker::FinishPartition(const std::shared_ptr<Running>& running,
                             executor::StepOutcome outcome) {
  executor::StepOutcome whole;
  {
    MutexLock lock(running->mutex);
    executor::StepOutcome& merged = running->outcome;
    if (merged.status.ok()) merged.status = outcome.status;
    for (auto& fetch : outcome.fetches) merged.fetches.push_back(std::move(fetch));
    if (outcome.ticket != 0) merged.ticket = outcome.ticket;
    if (--running->partitions_left > 0) return;
    whole = std::move(merged);
  }
  // The rendezvous knows the first reason; a partition may have met only its consequence.
  if (!whole.status.ok() && !running->rendezvous->status().ok())
    whole.status = running->rendezvous->status();
  {
    MutexLock lock(mutex_);
    running_.erase(running->id);
  }
  steps_.End(running->id);
  steps_run_.fetch_add(1, std::memory_order_relaxed);
  if (Done done = std::exchange(running->done, nullptr)) done(std::move(whole));
}

void Worker::ExpireSteps(TimePoint now) {
  std::vector<std::shared_ptr<Running>> expired;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, running] : running_) {
      if (running->deadline <= now) expired.push_back(running);
    }
  }
  for (const auto& running : expired) {
    running->rendezvous->Abort(absl::DeadlineExceededError(
        absl::StrFormat("step %d of %s was still running on %s at its deadline", running->id.step,
                        running->plan->master.ToString(), env_.self.task.ToString())));
  }
}

void Worker::AbortStep(const store::StepId& id, const absl::Status& reason) {
  steps_.Abort(id, reason);
}

absl::StatusOr<Buffer> Worker::TensorBuffer(const store::StepId& id, std::uint32_t edge,
                                            const TensorHeader& header) {
  std::uint64_t bytes = 0;
  if (header.dtype != at::ScalarType::Undefined) {
    WEIR_ASSIGN_OR_RETURN(bytes, TensorBytes(header.dtype, header.dims));
  }
  if (const auto running = FindRunning(id)) {
    const auto expected = running->plan->expected.find(edge);
    if (expected == running->plan->expected.end()) {
      return absl::InvalidArgumentError(absl::StrFormat("edge %d is not in the plan", edge));
    }
    WEIR_RETURN_IF_ERROR(CheckExpected(expected->second, header));
  } else if (!KnowsOrigin(id.origin)) {
    return absl::InvalidArgumentError("a tensor of a step nobody here has planned");
  } else {
    WEIR_RETURN_IF_ERROR(steps_.CheckRoom(id, bytes));
  }
  if (bytes > env_.tensor_bytes_max) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "a tensor of %d bytes; at most %d are accepted", bytes, env_.tensor_bytes_max));
  }
  if (bytes == 0) return Buffer{};
  return env_.buffers->Lease(bytes);
}

absl::Status Worker::DeliverTensor(const store::StepId& id, std::uint32_t edge, Value value) {
  return steps_.Deliver(id, edge, std::move(value));
}

void Worker::OnPeerLost(const Identity& peer, const absl::Status& reason) {
  std::vector<std::shared_ptr<Running>> affected;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, running] : running_) {
      if (running->plan->peers.contains(peer.task) || id.origin == peer.incarnation)
        affected.push_back(running);
    }
  }
  for (const auto& running : affected) running->rendezvous->Abort(reason);
  steps_.AbortOrigin(peer.incarnation, reason);
}

void Worker::OnPeerUp(const Identity& peer) {
  MutexLock lock(mutex_);
  for (auto it = plans_.begin(); it != plans_.end();) {
    const bool of_former_life =
        it->second->master == peer.task && it->first.first != peer.incarnation;
    it = of_former_life ? plans_.erase(it) : std::next(it);
  }
}

void Worker::Close(const absl::Status& reason) {
  steps_.AbortAll(reason);
}

std::uint64_t Worker::steps_running() const {
  MutexLock lock(mutex_);
  return running_.size();
}

}  // namespace weir::runtime
