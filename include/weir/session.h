// A session runs steps of one graph on a cluster.
//
// It lives either in the process of a task (its own server's master does the work) or, by Connect,
// in any other process, which then feeds and fetches over the network. State outlives it: variables
// stay in the stores of their tasks.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "weir/graph.h"

namespace weir {

struct SessionOptions {
  /// OpenSession initialises the variables that are missing, each exactly once per incarnation of
  /// its store, whoever comes first. false leaves them; reading one is then FailedPrecondition.
  bool initialize = true;
  /// A node that asks for a type or number of device that its task lacks ("/device:GPU:0") is
  /// placed on another device of that task, instead of failing the session. Job and task always
  /// hold. TensorFlow's allow_soft_placement.
  bool soft_placement = false;
  /// How long to wait for the tasks that the graph's variables need, and for those a plan needs.
  std::chrono::milliseconds start_timeout{60'000};
  /// Limit of one Run when it names none.
  std::chrono::milliseconds step_timeout{600'000};
  /// Steps that may run at the same time; a Run beyond that waits for one to end. Bounds what is in
  /// flight to a slow peer, and the memory that steps hold.
  int max_steps_in_flight = 8;
  /// Plans kept; the one used longest ago is forgotten beyond that.
  int max_plans = 64;
};

struct RunOptions {
  /// Zero: the session's step_timeout. DeadlineExceeded after that; the session stays usable.
  std::chrono::milliseconds timeout{0};
};

/// One value for one placeholder (or for any other output, which then is not computed).
using Feed = std::pair<Output, at::Tensor>;

struct RunResult {
  /// As asked for, in order; detached, never overwritten by later steps.
  std::vector<at::Tensor> fetches;
  /// The number of this step among all training steps of the job, from 1; 0 when no target trains.
  std::uint64_t step = 0;

  const at::Tensor& operator[](std::size_t i) const { return fetches[i]; }
};

/// What the observer of a session gets to know of each completed step.
struct StepReport {
  std::uint64_t step = 0;
  const std::vector<Output>* fetches = nullptr;
  const std::vector<at::Tensor>* values = nullptr;
};

class SessionImpl;

/// Move-only. Run is thread-safe: several steps may be in flight.
class Session {
 public:
  /// A session of the master at `target` ("grpc://host:port"), from a process that is no task.
  /// Function nodes cannot be used: they run only where they were made. `graph` must outlive the
  /// session.
  static absl::StatusOr<Session> Connect(const std::string& target, const Graph& graph,
                                         const SessionOptions& options = {});

  explicit Session(std::unique_ptr<SessionImpl> impl);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  /// Runs what the fetches and targets need, once. Blocks up to the timeout. The first call for a
  /// combination of (feeds, fetches, targets) plans it; later ones cost one small message per task,
  /// and the tensors.
  ///
  /// Errors: InvalidArgument for a feed of a wrong dtype or shape, naming the placeholder;
  /// FailedPrecondition for an uninitialised variable or a closed session; Unavailable when a task
  /// the step needs has gone, Aborted when it was restarted; OutOfRange when the step limit is
  /// reached (training is over, ShouldStop()).
  absl::StatusOr<RunResult> Run(const std::vector<Feed>& feeds, const std::vector<Output>& fetches,
                                const std::vector<Operation>& targets = {},
                                const RunOptions& options = {});

  /// The placed, partitioned graph that such a Run executes, as text.
  absl::StatusOr<std::string> DumpPlan(const std::vector<Output>& feeds,
                                       const std::vector<Output>& fetches,
                                       const std::vector<Operation>& targets = {});

  /// True once the step limit is reached, or RequestStop was called.
  bool ShouldStop() const;
  void RequestStop();

  /// Called after each completed step, on the thread of its Run. Set it before the first Run.
  void SetObserver(std::function<void(const StepReport&)> observer);

  /// Ends steps in flight with Cancelled and lets go of the plans. Bounded by the stop deadline;
  /// idempotent.
  absl::Status Close();

 private:
  std::unique_ptr<SessionImpl> impl_;
};

}  // namespace weir
