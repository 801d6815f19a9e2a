// Sessions of clients that are no tasks: their feeds come over a link, their steps run here, their
// fetches go back.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/scheduler.h"
#include "runtime/link.h"
#include "runtime/master.h"
#include "tensor/buffer_pool.h"

namespace weir::runtime {

/// Thread-safe. Feeds are tensors on edges 1..n that come before their RUN; fetches are tensors on
/// edges 1..n before the DONE.
class ClientSteps {
 public:
  static constexpr std::uint32_t kFeedsMax = 4096;
  static constexpr std::size_t kSessionsMax = 1024;
  /// What a feed counts besides its bytes.
  static constexpr std::size_t kFeedOverheadBytes = 256;
  /// Longest step a client may ask for: a week.
  static constexpr std::uint64_t kTimeoutMsMax = std::uint64_t{7} * 24 * 3600 * 1000;

  struct Environment {
    Master* master = nullptr;  // not owned, as all below
    BufferPool* buffers = nullptr;
    Scheduler* scheduler = nullptr;
    Scheduler* compute = nullptr;
    std::size_t feed_bytes_max = 0;   // per client, of feeds whose run has not come
    Duration idle_session_timeout{};  // a session whose client has no link for this long is closed
  };

  explicit ClientSteps(Environment environment) : env_(environment) {}

  /// ResourceExhausted when there are kSessionsMax already.
  absl::StatusOr<std::uint64_t> AddSession(std::uint64_t client,
                                           std::shared_ptr<MasterSession> session);
  absl::StatusOr<std::shared_ptr<MasterSession>> FindSession(std::uint64_t client,
                                                             std::uint64_t session) const;
  /// Remembers a plan so that a RUN may name it.
  void AddPlan(std::uint64_t session, std::shared_ptr<const MasterPlan> plan);
  void CloseSession(std::uint64_t client, std::uint64_t session);

  absl::StatusOr<Buffer> FeedBuffer(Link& link, std::uint32_t edge, const TensorHeader& header);
  absl::Status OnFeed(Link& link, const store::StepId& step, std::uint32_t edge, Value value);
  void OnRun(const std::shared_ptr<Link>& link, const store::StepId& step,
             const RunMessage& message);
  void OnAbort(Link& link, const store::StepId& step, const absl::Status& reason);
  void OnLinkUp(Link& link);
  /// Ends the client's steps, if it has no other link. Its sessions stay for idle_session_timeout:
  /// it may come back.
  void OnLinkDown(Link& link, const absl::Status& reason);
  /// Closes the sessions of clients that never came, or did not come back.
  void CloseIdleSessions(TimePoint now);
  void CloseAll();

 private:
  struct ClientSession {
    std::uint64_t client = 0;
    std::shared_ptr<MasterSession> session;
    std::map<std::uint64_t, std::shared_ptr<const MasterPlan>> plans;
    TimePoint idle_since;  // when it was opened, or the client's last link went
  };
  struct Client {
    int links = 0;
    std::size_t feed_bytes = 0;
    std::map<std::uint64_t, std::map<std::uint32_t, at::Tensor>> feeds;  // by step, by edge
    std::map<std::uint64_t, std::shared_ptr<Master::ActiveStep>> steps;  // that run
  };

  absl::StatusOr<std::vector<at::Tensor>> TakeFeeds(std::uint64_t client, const store::StepId& step,
                                                    std::uint32_t count);
  void Reply(const std::weak_ptr<Link>& link, const store::StepId& step,
             absl::StatusOr<StepResult> result);
  void CloseSessions(const std::function<bool(const ClientSession&)>& which);

  const Environment env_;
  mutable Mutex mutex_;
  std::uint64_t next_session_ WEIR_GUARDED_BY(mutex_) = 1;
  std::map<std::uint64_t, ClientSession> sessions_ WEIR_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Client> clients_ WEIR_GUARDED_BY(mutex_);  // by incarnation
};

}  // namespace weir::runtime
