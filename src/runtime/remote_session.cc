#include "runtime/remote_session.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/mutex.h"
#include "base/scoped_scheduler.h"
#include "base/status.h"
#include "cluster/cluster_spec.h"
#include "runtime/client_steps.h"
#include "runtime/link.h"
#include "runtime/session_backend.h"
#include "runtime/session_impl.h"
#include "tensor/buffer_pool.h"
#include "tensor/dtype.h"

namespace weir::runtime {
namespace {

constexpr std::chrono::seconds kStopTimeout{5};

struct RemotePlan final : SessionBackend::Plan {
  std::vector<std::string> feed_names;
  std::uint64_t number = 0;
  std::size_t num_fetches = 0;
  mutable std::atomic<bool> stale{false};
};

/// A step whose fetches are awaited.
struct PendingStep {
  std::size_t num_fetches = 0;
  std::shared_ptr<Driver> driver;
  Mutex mutex;
  std::map<std::uint32_t, at::Tensor> fetches WEIR_GUARDED_BY(mutex);
  absl::Status status WEIR_GUARDED_BY(mutex);
  std::uint64_t ticket WEIR_GUARDED_BY(mutex) = 0;
  bool over WEIR_GUARDED_BY(mutex) = false;

  bool IsOver() {
    MutexLock lock(mutex);
    return over;
  }
  void End(const absl::Status& why, std::uint64_t step_ticket) {
    {
      MutexLock lock(mutex);
      if (over) return;
      over = true;
      status = why;
      ticket = step_ticket;
    }
    driver->Post([] {});
  }
};

/// Calls `start(reply)` and blocks until the reply has come; the calls carry their own deadline.
template <typename T>
absl::StatusOr<T> Await(Scheduler& scheduler,
                        const std::function<void(std::function<void(absl::StatusOr<T>)>)>& start) {
  struct State {
    Mutex mutex;
    std::optional<absl::StatusOr<T>> result WEIR_GUARDED_BY(mutex);
    std::unique_ptr<Driver> driver;
    bool HasResult() {
      MutexLock lock(mutex);
      return result.has_value();
    }
  };
  auto state = std::make_shared<State>();
  state->driver = scheduler.NewDriver();
  start([state](absl::StatusOr<T> result) {
    {
      MutexLock lock(state->mutex);
      state->result = std::move(result);
    }
    state->driver->Post([] {});
  });
  state->driver->RunUntil([&] { return state->HasResult(); }, TimePoint::max());
  MutexLock lock(state->mutex);
  return *std::move(state->result);
}

/// A feed that cannot travel would cost the connection, and every other step on it.
absl::Status CheckFeeds(const std::vector<std::string>& names,
                        const std::vector<at::Tensor>& feeds) {
  if (feeds.size() > ClientSteps::kFeedsMax) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%d feeds; at most %d are taken from a client", feeds.size(), ClientSteps::kFeedsMax));
  }
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    const absl::Status status = feeds[i].defined() ? CheckCanTravel(feeds[i])
                                                   : absl::InvalidArgumentError("it is no tensor");
    WEIR_RETURN_IF_ERROR(Annotate(status, "the feed of '" + names[i] + "'"));
  }
  return absl::OkStatus();
}

absl::Status CheckNoFunctions(const Graph& graph) {
  for (const Node& node : graph.def().nodes) {
    if (node.op != "Function") continue;
    return absl::InvalidArgumentError(
        "node '" + node.name +
        "' is a Function, which runs only in the process that built the graph; the master of this "
        "session is another process");
  }
  return absl::OkStatus();
}

class RemoteBackend final : public SessionBackend, public LinkSink {
 public:
  RemoteBackend(ClientParts parts, std::string address)
      : parts_(std::move(parts)),
        address_(std::move(address)),
        identity_{.cluster_id = 0, .task = {}, .incarnation = NewIncarnation()},
        scheduler_(*parts_.scheduler),
        control_(parts_.control_plane->NewClient(address_)) {}

  ~RemoteBackend() override { Close().IgnoreError(); }

  absl::Status Open(const Graph& graph, const SessionOptions& options);

  // SessionBackend
  absl::StatusOr<std::shared_ptr<const Plan>> MakePlan(const graph::Signature& signature) override;
  bool IsStale(const Plan& plan) const override {
    return static_cast<const RemotePlan&>(plan).stale;
  }
  absl::StatusOr<StepResult> RunStep(const std::shared_ptr<const Plan>& plan,
                                     std::vector<at::Tensor> feeds, TimePoint deadline,
                                     const std::shared_ptr<Driver>& driver) override;
  absl::Status Close() override;

  // LinkSink
  void OnLinkUp(const std::shared_ptr<Link>& link) override;
  void OnLinkRefused(const std::string&, const absl::Status&) override {}  // nobody dials a client
  absl::StatusOr<Buffer> OnTensorPayload(Link&, const store::StepId& step, std::uint32_t edge,
                                         const TensorHeader& header) override;
  absl::Status OnTensor(Link&, const store::StepId& step, std::uint32_t edge, Value value) override;
  absl::Status OnRun(const std::shared_ptr<Link>&, const store::StepId&,
                     const RunMessage&) override {
    return absl::InvalidArgumentError("a client runs no steps of others");
  }
  absl::Status OnDone(Link&, const store::StepId& step, const DoneMessage& message) override;
  absl::Status OnAbort(Link&, const store::StepId&, const absl::Status&) override {
    return absl::InvalidArgumentError("a client runs no steps of others");
  }
  void OnLinkDown(const std::shared_ptr<Link>& link, const absl::Status& reason) override;

  Scheduler* scheduler() { return &scheduler_; }

 private:
  rpc::Caller Caller() const {
    return {.cluster_id = 0,
            .from = {},
            .from_incarnation = identity_.incarnation,
            .to = {},
            .to_incarnation = 0};
  }
  absl::StatusOr<std::shared_ptr<Link>> Connect(TimePoint deadline);
  absl::Status BeginStep(const std::shared_ptr<Link>& link,
                         const std::shared_ptr<PendingStep>& pending, store::StepId& id);
  std::shared_ptr<PendingStep> FindStep(const store::StepId& step);

  const ClientParts parts_;
  const std::string address_;
  const Identity identity_;
  ScopedScheduler scheduler_;
  BufferPool buffers_;
  const std::shared_ptr<rpc::TaskClient> control_;
  Duration start_timeout_{};
  rpc::SessionReply session_;
  Mutex connecting_mutex_;  // one dials at a time; taken before mutex_
  Mutex mutex_;
  bool closed_ WEIR_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Link> link_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t next_step_ WEIR_GUARDED_BY(mutex_) = 1;
  std::map<std::uint64_t, std::shared_ptr<PendingStep>> steps_ WEIR_GUARDED_BY(mutex_);
};

absl::Status RemoteBackend::Open(const Graph& graph, const SessionOptions& options) {
  start_timeout_ = options.start_timeout;
  const TimePoint deadline = scheduler_.Now() + start_timeout_;
  WEIR_ASSIGN_OR_RETURN(session_, Await<rpc::SessionReply>(scheduler_, [&](auto reply) {
                          control_->OpenSession(Caller(),
                                                {.graph = graph.def(),
                                                 .initialize = options.initialize,
                                                 .soft_placement = options.soft_placement,
                                                 .start_timeout_ms = options.start_timeout.count(),
                                                 .cluster_name = {}},
                                                {.deadline = deadline, .wait_for_ready = true},
                                                std::move(reply));
                        }));
  return Connect(deadline).status();
}

absl::StatusOr<std::shared_ptr<Link>> RemoteBackend::Connect(TimePoint deadline) {
  MutexLock connecting(connecting_mutex_);
  {
    MutexLock lock(mutex_);
    if (closed_) return absl::FailedPreconditionError("Session is closed.");
    if (link_) return link_;
  }
  return Await<std::shared_ptr<Link>>(scheduler_, [&](auto reply) {
    parts_.transport->Dial(
        session_.data_address, deadline,
        [this, deadline, reply](absl::StatusOr<std::shared_ptr<transport::Connection>> connection) {
          if (!connection.ok()) return reply(connection.status());
          Link::Greet(*std::move(connection),
                      {.self = identity_,
                       .cluster = nullptr,
                       .sink = this,
                       .scheduler = &scheduler_,
                       .traffic = nullptr},
                      TaskId{}, session_.incarnation, deadline, reply);
        });
  });
}

// On the link's loop, so that no OnLinkDown can come before it.
void RemoteBackend::OnLinkUp(const std::shared_ptr<Link>& link) {
  MutexLock lock(mutex_);
  link_ = link;
}

// A step is known before its first frame leaves, and only while the link that carries it is up:
// whoever takes the link down then ends the step.
absl::Status RemoteBackend::BeginStep(const std::shared_ptr<Link>& link,
                                      const std::shared_ptr<PendingStep>& pending,
                                      store::StepId& id) {
  MutexLock lock(mutex_);
  if (link_ != link) {
    return absl::UnavailableError("lost the connection to the master at " + address_);
  }
  id = {.origin = identity_.incarnation, .step = next_step_++};
  steps_[id.step] = pending;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const SessionBackend::Plan>> RemoteBackend::MakePlan(
    const graph::Signature& signature) {
  const TimePoint deadline = scheduler_.Now() + start_timeout_ + kStopTimeout;
  WEIR_ASSIGN_OR_RETURN(
      const rpc::PlanReply reply, Await<rpc::PlanReply>(scheduler_, [&](auto done) {
        control_->MakePlan(Caller(), session_.session, signature,
                           {.deadline = deadline, .wait_for_ready = false}, std::move(done));
      }));
  auto plan = std::make_shared<RemotePlan>();
  plan->dump = reply.dump;
  plan->feed_names = signature.feeds;
  plan->number = reply.plan;
  plan->num_fetches = static_cast<std::size_t>(std::max(0, reply.num_fetches));
  return plan;
}

absl::StatusOr<StepResult> RemoteBackend::RunStep(const std::shared_ptr<const Plan>& plan_base,
                                                  std::vector<at::Tensor> feeds, TimePoint deadline,
                                                  const std::shared_ptr<Driver>& driver) {
  const auto& plan = static_cast<const RemotePlan&>(*plan_base);
  WEIR_RETURN_IF_ERROR(CheckFeeds(plan.feed_names, feeds));
  WEIR_ASSIGN_OR_RETURN(const auto link, Connect(deadline));
  auto pending = std::make_shared<PendingStep>();
  pending->num_fetches = plan.num_fetches;
  pending->driver = driver;
  store::StepId id;
  WEIR_RETURN_IF_ERROR(BeginStep(link, pending, id));
  std::uint32_t edge = 0;
  for (at::Tensor& feed : feeds) link->SendTensor(id, ++edge, {.tensor = std::move(feed)});
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - scheduler_.Now());
  link->SendRun(
      id, {.plan = plan.number,
           .session = session_.session,
           .num_feeds = edge,
           .timeout_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(1, left.count()))});
  if (!driver->RunUntil([&] { return pending->IsOver(); }, deadline)) {
    const absl::Status late = absl::DeadlineExceededError(
        absl::StrFormat("no answer from the master at %s in time", address_));
    link->SendAbort(id, late);
    pending->End(late, 0);
  }
  {
    MutexLock lock(mutex_);
    steps_.erase(id.step);
  }
  MutexLock lock(pending->mutex);
  if (absl::IsAborted(pending->status) || absl::IsUnavailable(pending->status)) plan.stale = true;
  WEIR_RETURN_IF_ERROR(pending->status);
  StepResult result;
  result.ticket = pending->ticket;
  for (auto& [index, tensor] : pending->fetches) result.fetches.push_back(std::move(tensor));
  if (result.fetches.size() != plan.num_fetches)
    return absl::InternalError("the master sent other fetches than were asked for");
  return result;
}

std::shared_ptr<PendingStep> RemoteBackend::FindStep(const store::StepId& step) {
  MutexLock lock(mutex_);
  const auto it = steps_.find(step.step);
  return it == steps_.end() ? nullptr : it->second;
}

absl::StatusOr<Buffer> RemoteBackend::OnTensorPayload(Link&, const store::StepId& step,
                                                      std::uint32_t edge,
                                                      const TensorHeader& header) {
  const auto pending = FindStep(step);
  if (pending && (edge == 0 || edge > pending->num_fetches))
    return absl::InvalidArgumentError("a fetch nobody asked for");
  if (header.dtype == at::ScalarType::Undefined) return Buffer{};
  WEIR_ASSIGN_OR_RETURN(const std::uint64_t bytes, TensorBytes(header.dtype, header.dims));
  if (bytes == 0) return Buffer{};
  return buffers_.Lease(bytes);
}

absl::Status RemoteBackend::OnTensor(Link&, const store::StepId& step, std::uint32_t edge,
                                     Value value) {
  const auto pending = FindStep(step);
  if (!pending) return absl::OkStatus();  // the step was given up
  MutexLock lock(pending->mutex);
  pending->fetches[edge] = std::move(value.tensor);
  return absl::OkStatus();
}

absl::Status RemoteBackend::OnDone(Link&, const store::StepId& step, const DoneMessage& message) {
  if (const auto pending = FindStep(step)) pending->End(message.status, message.ticket);
  return absl::OkStatus();
}

void RemoteBackend::OnLinkDown(const std::shared_ptr<Link>& link, const absl::Status& reason) {
  std::map<std::uint64_t, std::shared_ptr<PendingStep>> steps;
  {
    MutexLock lock(mutex_);
    if (link_ == link) link_ = nullptr;
    steps = steps_;
  }
  const absl::Status lost = Annotate(reason, "lost the connection to the master at " + address_);
  for (const auto& [number, step] : steps) step->End(lost, 0);
}

absl::Status RemoteBackend::Close() {
  std::shared_ptr<Link> link;
  {
    MutexLock lock(mutex_);
    if (std::exchange(closed_, true)) return absl::OkStatus();
    link = link_;
  }
  const TimePoint deadline = scheduler_.Now() + kStopTimeout;
  const auto closed = Await<int>(scheduler_, [&](auto reply) {
    control_->CloseSession(
        Caller(), session_.session, {.deadline = deadline, .wait_for_ready = false},
        [reply](const absl::Status& status) {
          reply(status.ok() ? absl::StatusOr<int>(0) : absl::StatusOr<int>(status));
        });
  });
  if (link) link->Close(absl::OkStatus());
  parts_.transport->Close();
  {
    MutexLock last_dial(connecting_mutex_);
  }  // the transport must not be dialled after Join
  parts_.transport->Join();
  scheduler_.Close();
  scheduler_.Join();
  return absl::IsUnavailable(closed.status())
             ? absl::OkStatus()
             : closed.status();  // a master that is gone has closed it
}

}  // namespace

absl::StatusOr<Session> ConnectSession(ClientParts parts, const std::string& address,
                                       const Graph& graph, const SessionOptions& options) {
  WEIR_RETURN_IF_ERROR(graph.status());
  WEIR_RETURN_IF_ERROR(CheckNoFunctions(graph));
  auto backend = std::make_unique<RemoteBackend>(std::move(parts), address);
  WEIR_RETURN_IF_ERROR(Annotate(backend->Open(graph, options), "opening a session on " + address));
  Scheduler* const scheduler = backend->scheduler();
  return Session(std::make_unique<SessionImpl>(std::move(backend), graph, options, scheduler));
}

}  // namespace weir::runtime
