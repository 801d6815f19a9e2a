#include "runtime/master.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "runtime/active_step.h"
#include "runtime/gather.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace weir::runtime {
namespace {

absl::Status CheckFeeds(const MasterPlan& plan, const std::vector<at::Tensor>& feeds) {
  if (feeds.size() != plan.feeds.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d feeds for a plan of %d", feeds.size(), plan.feeds.size()));
  }
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    const OutputInfo& expected = plan.feeds[i];
    if (!feeds[i].defined())
      return absl::InvalidArgumentError("the feed of '" + plan.feed_names[i] + "' is no tensor");
    if (expected.dtype == at::ScalarType::Undefined) continue;  // nothing that runs needs it
    if (feeds[i].scalar_type() == expected.dtype && ShapeAllows(expected.shape, feeds[i].sizes()))
      continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("the feed of '%s' is %s%s, expected %s%s", plan.feed_names[i],
                        DtypeName(feeds[i].scalar_type()), ShapeToString(feeds[i].sizes().vec()),
                        DtypeName(expected.dtype), ShapeToString(expected.shape)));
  }
  return absl::OkStatus();
}

}  // namespace

std::shared_ptr<Master::ActiveStep> Master::FindStep(std::uint64_t number) const {
  MutexLock lock(mutex_);
  const auto it = active_.find(number);
  return it == active_.end() ? nullptr : it->second;
}

absl::StatusOr<StepResult> Master::RunStep(const std::shared_ptr<MasterSession>& session,
                                           const std::shared_ptr<const MasterPlan>& plan,
                                           std::vector<at::Tensor> feeds, TimePoint deadline,
                                           const std::shared_ptr<Driver>& driver) {
  WEIR_RETURN_IF_ERROR(ConnectAll(*plan, deadline));
  // On the caller's stack: the step cannot outlive this call, see the second RunUntil.
  std::atomic<bool> over{false};
  absl::StatusOr<StepResult> result = absl::InternalError("the step has no outcome");
  const auto step = StartStep(
      session, plan, std::move(feeds), deadline,
      [driver](std::function<void()> work) { driver->Post(std::move(work)); },
      [&, driver](absl::StatusOr<StepResult> outcome) {
        driver->Post([&, outcome = std::move(outcome)]() mutable {
          result = std::move(outcome);
          over = true;
        });
      });
  const auto is_over = [&] { return over.load(); };
  if (!driver->RunUntil(is_over, deadline)) {
    Abort(step, absl::DeadlineExceededError(absl::StrFormat("step %d has passed its deadline%s",
                                                            step->id.step, DescribeMissing(step))));
    driver->RunUntil(is_over, TimePoint::max());
  }
  return result;
}

std::shared_ptr<Master::ActiveStep> Master::StartStep(const std::shared_ptr<MasterSession>& session,
                                                      const std::shared_ptr<const MasterPlan>& plan,
                                                      std::vector<at::Tensor> feeds,
                                                      TimePoint deadline, Worker::Post post,
                                                      StepDone done) {
  auto step = std::make_shared<ActiveStep>();
  step->session = session;
  step->plan = plan;
  {
    MutexLock lock(step->mutex);
    step->missing.insert(plan->remote.begin(), plan->remote.end());
    step->local_over = !plan->local;
    step->done = std::move(done);
  }
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - env_.scheduler->Now());
  const RunMessage run = {
      .plan = plan->number,
      .session = 0,
      .num_feeds = 0,
      .timeout_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(1, left.count()))};
  std::shared_ptr<Worker::Running> local;
  absl::Status failure = CheckFeeds(*plan, feeds);
  {
    // One lock over number and sends: a task must see the steps of this master in the order of
    // their numbers.
    MutexLock lock(mutex_);
    step->id = {env_.self.incarnation, next_step_++};
    if (failure.ok()) failure = closed_;
    if (failure.ok()) failure = session->closed();
    if (failure.ok() && plan->local) {
      auto begun = env_.worker->Begin(step->id, plan->number, deadline);
      if (begun.ok()) {
        local = *std::move(begun);
      } else {
        failure = begun.status();
      }
    }
    if (failure.ok()) {
      active_[step->id.step] = step;
      failure = SendRuns(*step, run);
    } else {
      MutexLock step_lock(step->mutex);
      step->missing.clear();  // nobody has heard of it
    }
  }
  if (local) {
    env_.worker->Start(
        local, std::move(feeds), std::move(post), [this, step](executor::StepOutcome outcome) {
          {
            MutexLock lock(step->mutex);
            step->local_over = true;
            if (step->status.ok()) step->status = outcome.status;
            step->result.fetches.resize(static_cast<std::size_t>(step->plan->num_fetches));
            for (auto& [index, tensor] : outcome.fetches)
              step->result.fetches[static_cast<std::size_t>(index)] = std::move(tensor);
            if (outcome.ticket != 0) step->result.ticket = outcome.ticket;
          }
          FinishIfOver(step);
        });
  } else if (!failure.ok()) {
    MutexLock lock(step->mutex);
    step->local_over = true;
  }
  if (!failure.ok()) Abort(step, failure);
  return step;
}

// A task that has not got its RUN is not missed: it must not hear of the step by an ABORT either.
absl::Status Master::SendRuns(ActiveStep& step, const RunMessage& run) {
  absl::Status failure;
  for (const TaskId& task : step.plan->remote) {
    if (const auto link = env_.peers->Find(task)) {
      link->SendRun(step.id, run);
      continue;
    }
    if (failure.ok())
      failure = absl::UnavailableError(env_.peers->Describe(task) + " is not connected");
    MutexLock lock(step.mutex);
    step.missing.erase(task);
  }
  return failure;
}

void Master::Abort(const std::shared_ptr<ActiveStep>& step, const absl::Status& reason) {
  bool local_runs = false;
  {
    MutexLock lock(step->mutex);
    if (step->status.ok()) step->status = reason;
    local_runs = !step->local_over;
  }
  if (local_runs) env_.worker->AbortStep(step->id, reason);
  FinishIfOver(step);
}

void Master::FinishIfOver(const std::shared_ptr<ActiveStep>& step) {
  std::set<TaskId> to_abort;
  absl::Status status;
  StepResult result;
  StepDone done;
  {
    MutexLock lock(step->mutex);
    const bool failed = !step->status.ok();
    if (failed) to_abort.swap(step->missing);
    status = step->status;
    if (step->local_over && step->missing.empty()) {
      done = std::exchange(step->done, nullptr);
      result = std::move(step->result);
    }
  }
  for (const TaskId& task : to_abort) {
    if (const auto link = env_.peers->Find(task)) link->SendAbort(step->id, status);
  }
  if (!done) return;
  {
    MutexLock lock(mutex_);
    active_.erase(step->id.step);
  }
  if (status.ok()) return done(std::move(result));
  if (absl::IsAborted(status) || absl::IsUnavailable(status)) step->plan->stale = true;
  done(
      Annotate(status, absl::StrFormat("step %d of %s", step->id.step, env_.self.task.ToString())));
}

void Master::OnDone(const TaskId& task, const store::StepId& id, const absl::Status& status,
                    std::uint64_t ticket) {
  if (id.origin != env_.self.incarnation) return;
  const auto step = FindStep(id.step);
  if (!step) return;  // it has ended by an error: this is late
  {
    MutexLock lock(step->mutex);
    step->missing.erase(task);
    if (ticket != 0) step->result.ticket = ticket;
  }
  if (!status.ok()) return Abort(step, Annotate(status, "From " + task.DevicePrefix()));
  FinishIfOver(step);
}

void Master::AbortSteps(const std::function<bool(const ActiveStep&)>& concerns,
                        const absl::Status& reason) {
  std::vector<std::shared_ptr<ActiveStep>> steps;
  {
    MutexLock lock(mutex_);
    for (const auto& [number, step] : active_) {
      if (concerns(*step)) steps.push_back(step);
    }
  }
  for (const auto& step : steps) Abort(step, reason);
}

void Master::OnPeerLost(const Identity& peer, const absl::Status& reason) {
  const auto needs_it = [&](const ActiveStep& step) {
    MutexLock lock(step.mutex);
    return step.missing.contains(peer.task);
  };
  AbortSteps(needs_it, reason);
}

void Master::Close(const absl::Status& reason) {
  {
    MutexLock lock(mutex_);
    closed_ = reason;
  }
  AbortSteps([](const ActiveStep&) { return true; }, reason);
}

std::string Master::DescribeMissing(const std::shared_ptr<ActiveStep>& step) const {
  MutexLock lock(step->mutex);
  if (step->missing.empty()) return "";
  return ", waiting for " +
         absl::StrJoin(step->missing, ", ", [this](std::string* out, const TaskId& task) {
           out->append(env_.peers->Describe(task));
         });
}

absl::Status Master::ConnectAll(const MasterPlan& plan, TimePoint deadline) {
  std::vector<TaskId> unconnected;
  for (const TaskId& task : plan.remote) {
    if (!env_.peers->Find(task)) unconnected.push_back(task);
  }
  if (!unconnected.empty()) {
    WEIR_RETURN_IF_ERROR(
        Gather(*env_.scheduler, unconnected, deadline, [this](const TaskId& task, auto reply) {
          env_.peers->Connect(
              task, [reply](absl::StatusOr<std::shared_ptr<Link>> link) { reply(link.status()); });
        }));
  }
  for (const auto& [task, incarnation] : plan.incarnations) {
    const auto link = env_.peers->Find(task);
    if (link && link->peer().incarnation != incarnation) {
      plan.stale = true;
      return absl::AbortedError(env_.peers->Describe(task) +
                                " was restarted since the plan was made");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<TaskId, std::uint64_t>> Master::AwaitTasks(const std::vector<TaskId>& tasks,
                                                                   TimePoint deadline) {
  // Replies are not later than the deadline, which the calls carry themselves; the margin lets
  // their own text win.
  auto shared = std::make_shared<std::pair<Mutex, std::map<TaskId, std::uint64_t>>>();
  WEIR_RETURN_IF_ERROR(Gather(*env_.scheduler, tasks, deadline + std::chrono::seconds(1),
                              [&](const TaskId& task, auto reply) {
                                env_.peers->AwaitTask(
                                    task, deadline,
                                    [shared, task, reply](absl::StatusOr<rpc::TaskStatus> status) {
                                      if (status.ok()) {
                                        MutexLock lock(shared->first);
                                        shared->second[task] = status->incarnation;
                                      }
                                      reply(status.status());
                                    });
                              }));
  MutexLock lock(shared->first);
  return shared->second;
}

}  // namespace weir::runtime
