#include "runtime/peers.h"

#include <atomic>
#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status.h"

namespace weir::runtime {
namespace {

constexpr std::chrono::seconds kWaitingLineEvery{5};
constexpr std::chrono::seconds kAnnounceTimeout{1};

double Seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

/// One wait for a task to come up: the call that is out, and the lines that say so.
struct Peers::Await {
  TaskId task;
  TimePoint began;
  TimePoint deadline;
  std::function<void(absl::StatusOr<rpc::TaskStatus>)> done;
  std::atomic<bool> over{false};
};

std::string Peers::Describe(const TaskId& task) const {
  const auto address = env_.cluster->Address(task);
  return absl::StrFormat("%s (%s)", task.ToString(),
                         address.ok() ? address->ToString() : "no address");
}

Link::Context Peers::LinkContext() const {
  return {.self = env_.self,
          .cluster = env_.cluster,
          .sink = env_.sink,
          .scheduler = env_.scheduler,
          .traffic = env_.traffic};
}

rpc::Caller Peers::CallerTo(const TaskId& task) const {
  return {.cluster_id = env_.self.cluster_id,
          .from = env_.self.task,
          .from_incarnation = env_.self.incarnation,
          .to = task,
          .to_incarnation = 0};
}

Peers::Peer& Peers::PeerOf(const TaskId& task) {
  Peer& peer = peers_[task];
  if (!peer.control) {
    const auto address = env_.cluster->Address(task);
    WEIR_CHECK(address.ok());
    peer.control = env_.control_plane->NewClient(address->ToString());
  }
  return peer;
}

std::shared_ptr<rpc::TaskClient> Peers::Control(const TaskId& task) {
  MutexLock lock(mutex_);
  return PeerOf(task).control;
}

std::shared_ptr<Link> Peers::Find(const TaskId& task) const {
  MutexLock lock(mutex_);
  const auto it = peers_.find(task);
  return it == peers_.end() ? nullptr : it->second.link;
}

void Peers::Connect(const TaskId& task, Connected done) {
  std::shared_ptr<Link> link;
  absl::Status closed;
  {
    MutexLock lock(mutex_);
    closed = closed_;
    if (closed.ok()) {
      Peer& peer = PeerOf(task);
      link = peer.link;
      if (!link) {
        peer.waiting.push_back(std::move(done));
        if (peer.connecting) return;
        peer.connecting = true;
      }
    }
  }
  if (!closed.ok()) return done(closed);
  if (link) return done(std::move(link));
  Dial(task, env_.scheduler->Now());
}

void Peers::Dial(const TaskId& task, TimePoint began) {
  const TimePoint deadline = began + env_.connect_timeout;
  auto on_status = [this, task, began, deadline](absl::StatusOr<rpc::TaskStatus> status) {
    if (!status.ok()) return FinishConnect(task, began, status.status());
    const std::uint64_t incarnation = status->incarnation;
    env_.transport->Dial(
        status->data_address, deadline,
        [this, task, began, deadline,
         incarnation](absl::StatusOr<std::shared_ptr<transport::Connection>> connection) {
          if (!connection.ok()) return FinishConnect(task, began, connection.status());
          Link::Greet(*std::move(connection), LinkContext(), task, incarnation, deadline,
                      [this, task, began](absl::StatusOr<std::shared_ptr<Link>> link) {
                        FinishConnect(task, began, std::move(link));
                      });
        });
  };
  Control(task)->GetStatus(CallerTo(task), /*with_variables=*/false,
                           {.deadline = deadline, .wait_for_ready = false}, std::move(on_status));
}

void Peers::FinishConnect(const TaskId& task, TimePoint began,
                          absl::StatusOr<std::shared_ptr<Link>> result) {
  std::vector<Connected> waiting;
  {
    MutexLock lock(mutex_);
    Peer& peer = PeerOf(task);
    peer.connecting = false;
    waiting.swap(peer.waiting);
    if (peer.link) result = peer.link;  // theirs may have come first
  }
  if (!result.ok()) {
    result =
        Annotate(result.status(), absl::StrFormat("connecting to %s for %.1f s", Describe(task),
                                                  Seconds(env_.scheduler->Now() - began)));
  }
  for (Connected& done : waiting) done(result);
}

void Peers::OnLinkUp(const std::shared_ptr<Link>& link) {
  if (link->peer().is_client()) return;
  std::shared_ptr<Link> replaced;
  {
    MutexLock lock(mutex_);
    Peer& peer = PeerOf(link->peer().task);
    if (peer.link && peer.link->peer().incarnation == link->peer().incarnation) return;
    replaced = std::exchange(peer.link, link);
  }
  if (replaced) {
    replaced->Close(
        absl::AbortedError(absl::StrFormat("%s was restarted", link->peer().task.ToString())));
  }
}

void Peers::OnLinkDown(const std::shared_ptr<Link>& link) {
  if (link->peer().is_client()) return;
  MutexLock lock(mutex_);
  Peer& peer = PeerOf(link->peer().task);
  if (peer.link == link) peer.link = nullptr;
}

void Peers::AwaitTask(const TaskId& task, TimePoint deadline,
                      std::function<void(absl::StatusOr<rpc::TaskStatus>)> done) {
  auto await = std::make_shared<Await>();
  await->task = task;
  await->began = env_.scheduler->Now();
  await->deadline = deadline;
  await->done = std::move(done);
  LogWaiting(await);
  AskUntilUp(await);
}

void Peers::AskUntilUp(const std::shared_ptr<Await>& await) {
  Control(await->task)
      ->GetStatus(
          CallerTo(await->task), /*with_variables=*/false,
          {.deadline = await->deadline, .wait_for_ready = true},
          [this, await](absl::StatusOr<rpc::TaskStatus> status) {
            await->over = true;
            if (status.ok()) return await->done(std::move(status));
            await->done(Annotate(status.status(),
                                 absl::StrFormat("waited %.1f s for %s",
                                                 Seconds(env_.scheduler->Now() - await->began),
                                                 Describe(await->task))));
          });
}

void Peers::LogWaiting(const std::shared_ptr<Await>& await) {
  env_.scheduler->PostAt(env_.scheduler->Now() + kWaitingLineEvery, [this, await] {
    if (await->over) return;
    const TimePoint now = env_.scheduler->Now();
    env_.logger->Info(absl::StrFormat("waiting for %s: %.0f s so far, giving up in %.0f s",
                                      Describe(await->task), Seconds(now - await->began),
                                      Seconds(await->deadline - now)));
    LogWaiting(await);
  });
}

void Peers::Poke(const TaskId& task) {
  Control(task)->Poke();
}

void Peers::AnnounceToAll() {
  const TimePoint deadline = env_.scheduler->Now() + kAnnounceTimeout;
  for (const TaskId& task : env_.cluster->AllTasks()) {
    if (task == env_.self.task) continue;
    Control(task)->Announce(CallerTo(task), {.deadline = deadline, .wait_for_ready = false},
                            [](absl::Status) {});
  }
}

void Peers::Close(const absl::Status& reason) {
  std::vector<Connected> waiting;
  std::vector<std::shared_ptr<Link>> links;
  {
    MutexLock lock(mutex_);
    closed_ = reason;
    for (auto& [task, peer] : peers_) {
      for (Connected& done : peer.waiting) waiting.push_back(std::move(done));
      peer.waiting.clear();
      if (peer.link) links.push_back(peer.link);
    }
  }
  for (Connected& done : waiting) done(reason);
  for (const auto& link : links) link->Close(reason);
}

}  // namespace weir::runtime
