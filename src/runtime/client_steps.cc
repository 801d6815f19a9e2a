#include "runtime/client_steps.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "runtime/active_step.h"
#include "tensor/dtype.h"

namespace weir::runtime {
namespace {

absl::Status CheckFetches(const std::vector<at::Tensor>& fetches) {
  for (std::size_t i = 0; i < fetches.size(); ++i) {
    WEIR_RETURN_IF_ERROR(
        Annotate(CheckCanTravel(fetches[i]), absl::StrFormat("fetch %d of the step", i)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::uint64_t> ClientSteps::AddSession(std::uint64_t client,
                                                      std::shared_ptr<MasterSession> session) {
  MutexLock lock(mutex_);
  if (sessions_.size() >= kSessionsMax) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%d sessions are open already", sessions_.size()));
  }
  const std::uint64_t number = next_session_++;
  sessions_[number] = {.client = client,
                       .session = std::move(session),
                       .plans = {},
                       .idle_since = env_.scheduler->Now()};
  return number;
}

absl::StatusOr<std::shared_ptr<MasterSession>> ClientSteps::FindSession(
    std::uint64_t client, std::uint64_t session) const {
  MutexLock lock(mutex_);
  const auto it = sessions_.find(session);
  if (it == sessions_.end() || it->second.client != client) {
    return absl::AbortedError(
        absl::StrFormat("Session %d is not found. Possibly, this master has restarted.", session));
  }
  return it->second.session;
}

void ClientSteps::AddPlan(std::uint64_t session, std::shared_ptr<const MasterPlan> plan) {
  MutexLock lock(mutex_);
  const auto it = sessions_.find(session);
  if (it == sessions_.end()) return;
  std::erase_if(it->second.plans, [](const auto& entry) { return entry.second->stale.load(); });
  it->second.plans[plan->number] = std::move(plan);
}

void ClientSteps::CloseSession(std::uint64_t client, std::uint64_t session) {
  std::shared_ptr<MasterSession> closing;
  {
    MutexLock lock(mutex_);
    const auto it = sessions_.find(session);
    if (it == sessions_.end() || it->second.client != client) return;
    closing = std::move(it->second.session);
    sessions_.erase(it);
  }
  closing->Close();
}

absl::StatusOr<Buffer> ClientSteps::FeedBuffer(Link& link, std::uint32_t edge,
                                               const TensorHeader& header) {
  if (edge == 0 || edge > kFeedsMax || header.dtype == at::ScalarType::Undefined) {
    return absl::InvalidArgumentError("a feed without a place, or without a tensor");
  }
  WEIR_ASSIGN_OR_RETURN(const std::uint64_t bytes, TensorBytes(header.dtype, header.dims));
  {
    MutexLock lock(mutex_);
    Client& client = clients_[link.peer().incarnation];
    const std::size_t room = env_.feed_bytes_max - client.feed_bytes;
    if (kFeedOverheadBytes > room || bytes > room - kFeedOverheadBytes) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("more than %d bytes of feeds without a run", env_.feed_bytes_max));
    }
    client.feed_bytes += bytes + kFeedOverheadBytes;
  }
  if (bytes == 0) return Buffer{};
  return env_.buffers->Lease(bytes);
}

absl::Status ClientSteps::OnFeed(Link& link, const store::StepId& step, std::uint32_t edge,
                                 Value value) {
  MutexLock lock(mutex_);
  auto& feeds = clients_[link.peer().incarnation].feeds[step.step];
  if (!feeds.emplace(edge, std::move(value.tensor)).second) {
    return absl::InvalidArgumentError(
        absl::StrFormat("feed %d of step %d came twice", edge, step.step));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<at::Tensor>> ClientSteps::TakeFeeds(std::uint64_t client,
                                                               const store::StepId& step,
                                                               std::uint32_t count) {
  std::map<std::uint32_t, at::Tensor> by_edge;
  {
    MutexLock lock(mutex_);
    Client& state = clients_[client];
    if (const auto it = state.feeds.find(step.step); it != state.feeds.end()) {
      by_edge = std::move(it->second);
      state.feeds.erase(it);
    }
    for (const auto& [edge, tensor] : by_edge)
      state.feed_bytes -= tensor.nbytes() + kFeedOverheadBytes;
  }
  std::vector<at::Tensor> feeds;
  for (auto& [edge, tensor] : by_edge) {
    if (edge == feeds.size() + 1) feeds.push_back(std::move(tensor));
  }
  if (feeds.size() != count || by_edge.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d feeds came for a step of %d", by_edge.size(), count));
  }
  return feeds;
}

void ClientSteps::OnRun(const std::shared_ptr<Link>& link, const store::StepId& step,
                        const RunMessage& message) {
  const std::uint64_t client = link->peer().incarnation;
  const std::weak_ptr<Link> reply_to = link;
  auto feeds = TakeFeeds(client, step, message.num_feeds);
  if (!feeds.ok()) return Reply(reply_to, step, feeds.status());
  auto session = FindSession(client, message.session);
  if (!session.ok()) return Reply(reply_to, step, session.status());
  std::shared_ptr<const MasterPlan> plan;
  {
    MutexLock lock(mutex_);
    if (const auto found = sessions_.find(message.session); found != sessions_.end()) {
      const auto& plans = found->second.plans;
      if (const auto it = plans.find(message.plan); it != plans.end()) plan = it->second;
    }
  }
  if (!plan)
    return Reply(
        reply_to, step,
        absl::AbortedError(absl::StrFormat("plan %d is not known to this session", message.plan)));
  const TimePoint deadline =
      env_.scheduler->Now() +
      std::chrono::milliseconds(std::min<std::uint64_t>(message.timeout_ms, kTimeoutMsMax));
  auto start = [this, reply_to, step, client, plan, deadline, session = *session,
                feeds = *std::move(feeds)]() mutable {
    // Blocking is allowed here: after a lost link the tasks are dialled again.
    if (const absl::Status status = env_.master->ConnectAll(*plan, deadline); !status.ok()) {
      return Reply(reply_to, step, status);
    }
    const auto active = env_.master->StartStep(
        session, plan, std::move(feeds), deadline,
        [compute = env_.compute](std::function<void()> work) { compute->Post(std::move(work)); },
        [this, reply_to, step, client](absl::StatusOr<StepResult> result) {
          {
            MutexLock lock(mutex_);
            if (const auto it = clients_.find(client); it != clients_.end())
              it->second.steps.erase(step.step);
          }
          Reply(reply_to, step, std::move(result));
        });
    MutexLock lock(mutex_);
    MutexLock step_lock(active->mutex);
    if (active->done) clients_[client].steps[step.step] = active;
  };
  env_.compute->Post([start = std::make_shared<decltype(start)>(std::move(start))] { (*start)(); });
}

void ClientSteps::Reply(const std::weak_ptr<Link>& weak_link, const store::StepId& step,
                        absl::StatusOr<StepResult> result) {
  const auto link = weak_link.lock();
  if (!link) return;
  if (result.ok()) {
    if (const absl::Status status = CheckFetches(result->fetches); !status.ok()) result = status;
  }
  DoneMessage done;
  done.status = result.status();
  if (result.ok()) {
    done.ticket = result->ticket;
    for (std::size_t i = 0; i < result->fetches.size(); ++i) {
      link->SendTensor(step, static_cast<std::uint32_t>(i + 1),
                       {.tensor = std::move(result->fetches[i])});
    }
  }
  link->SendDone(step, done);
}

void ClientSteps::OnAbort(Link& link, const store::StepId& step, const absl::Status& reason) {
  std::shared_ptr<Master::ActiveStep> active;
  {
    MutexLock lock(mutex_);
    auto& steps = clients_[link.peer().incarnation].steps;
    if (const auto it = steps.find(step.step); it != steps.end()) active = it->second;
  }
  if (active) env_.master->Abort(active, reason);
}

void ClientSteps::OnLinkUp(Link& link) {
  MutexLock lock(mutex_);
  ++clients_[link.peer().incarnation].links;
}

void ClientSteps::OnLinkDown(Link& link, const absl::Status& reason) {
  const std::uint64_t client = link.peer().incarnation;
  std::map<std::uint64_t, std::shared_ptr<Master::ActiveStep>> steps;
  {
    MutexLock lock(mutex_);
    Client& state = clients_[client];
    if (--state.links > 0) return;
    steps = std::move(state.steps);
    clients_.erase(client);
    for (auto& [number, session] : sessions_) {
      if (session.client == client) session.idle_since = env_.scheduler->Now();
    }
  }
  for (const auto& [number, step] : steps) env_.master->Abort(step, reason);
}

void ClientSteps::CloseIdleSessions(TimePoint now) {
  std::map<std::uint64_t, bool> linked;
  {
    MutexLock lock(mutex_);
    for (const auto& [client, state] : clients_) linked[client] = state.links > 0;
  }
  CloseSessions([&](const ClientSession& session) {
    return !linked[session.client] && session.idle_since + env_.idle_session_timeout < now;
  });
}

void ClientSteps::CloseAll() {
  CloseSessions([](const ClientSession&) { return true; });
}

void ClientSteps::CloseSessions(const std::function<bool(const ClientSession&)>& which) {
  std::vector<std::shared_ptr<MasterSession>> closing;
  {
    MutexLock lock(mutex_);
    for (auto it = sessions_.begin(); it != sessions_.end();) {
      if (which(it->second)) {
        closing.push_back(std::move(it->second.session));
        it = sessions_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (const auto& session : closing) session->Close();
}

}  // namespace weir::runtime
