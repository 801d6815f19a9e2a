// What is the same for every session: signatures, plans by signature, steps in flight, stopping.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/scheduler.h"
#include "runtime/session_backend.h"
#include "weir/session.h"

namespace weir {

/// Thread-safe but for SetObserver.
class SessionImpl {
 public:
  /// `scheduler` and `graph` are not owned and outlive the session.
  SessionImpl(std::unique_ptr<runtime::SessionBackend> backend, const Graph& graph,
              const SessionOptions& options, Scheduler* scheduler);
  ~SessionImpl();

  absl::StatusOr<RunResult> Run(const std::vector<Feed>& feeds, const std::vector<Output>& fetches,
                                const std::vector<Operation>& targets, const RunOptions& options);
  absl::StatusOr<std::string> DumpPlan(const std::vector<Output>& feeds,
                                       const std::vector<Output>& fetches,
                                       const std::vector<Operation>& targets);
  bool ShouldStop() const { return stop_; }
  void RequestStop() { stop_ = true; }
  void SetObserver(std::function<void(const StepReport&)> observer) {
    observer_ = std::move(observer);
  }
  absl::Status Close();

 private:
  using Plan = runtime::SessionBackend::Plan;
  /// Node and output numbers of feeds, fetches and targets: found without building names.
  using Key = std::vector<int>;

  /// InvalidArgument for a handle of another graph, or of none.
  absl::Status CheckGraph(const std::vector<Output>& feeds, const std::vector<Output>& fetches,
                          const std::vector<Operation>& targets) const;
  absl::StatusOr<std::shared_ptr<const Plan>> FindPlan(const Key& key,
                                                       const std::vector<Output>& feeds,
                                                       const std::vector<Output>& fetches,
                                                       const std::vector<Operation>& targets);
  absl::Status EnterStep(TimePoint deadline, const std::shared_ptr<Driver>& driver);
  void LeaveStep();
  std::shared_ptr<Driver> TakeDriver();
  void ReturnDriver(std::shared_ptr<Driver> driver);
  void NoteStop(const absl::StatusOr<runtime::StepResult>& result);

  const std::unique_ptr<runtime::SessionBackend> backend_;
  const Graph& graph_;
  const SessionOptions options_;
  Scheduler* const scheduler_;
  const std::int64_t step_limit_;  // of the graph's ticket, -1 for none
  std::function<void(const StepReport&)> observer_;
  std::atomic<bool> stop_{false};
  Mutex mutex_;
  std::map<Key, std::shared_ptr<const Plan>> plans_ WEIR_GUARDED_BY(mutex_);
  int steps_in_flight_ WEIR_GUARDED_BY(mutex_) = 0;
  std::deque<std::shared_ptr<Driver>> waiting_ WEIR_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Driver>> drivers_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir
