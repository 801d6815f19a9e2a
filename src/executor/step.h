// One run of a Program.
//
// A step is a strand: its nodes run one at a time, in topological order among those that are ready,
// on whatever thread `post` runs it. A node waits for its own inputs only, so the first layer
// starts when its weights are there; what is produced is sent at once, a gradient from inside the
// backward call as soon as autograd has it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "executor/program.h"
#include "rendezvous/step_rendezvous.h"
#include "store/ticket_book.h"

namespace weir::executor {

struct StepEnvironment {
  store::StepId id;
  /// Where this task's values of the step meet; shared by the task's partitions.
  std::shared_ptr<StepRendezvous> rendezvous;
  /// Hands a value to the device that waits for it: another task's, or another device of this one.
  /// Called on the step's thread; must not block.
  std::function<void(const SendEdge&, Value)> send;
  /// Runs the strand's next stretch: posts it to a pool or a driver, or calls it right away (I/O
  /// thread, small programs). At most one stretch is posted or running at a time.
  std::function<void(std::function<void()>)> post;
  /// By the `index` of Feed nodes. May be longer than this partition needs.
  std::vector<at::Tensor> feeds;
};

struct StepOutcome {
  absl::Status status;
  /// (index of the Fetch node, tensor), detached.
  std::vector<std::pair<int, at::Tensor>> fetches;
  /// The ticket this step held, 0 if it has none: the number of the step among all training steps.
  std::uint64_t ticket = 0;
};

/// Starts a step. `done` is called exactly once, on the step's thread, after the last node has run
/// or after the first error: then nothing of the step touches the environment any more. An error
/// aborts the rendezvous with that status, which names device and node; a ticket it held goes back.
/// When somebody else aborts the rendezvous, the step ends with that status.
void StartStep(std::shared_ptr<const Program> program, StepEnvironment environment,
               std::function<void(StepOutcome)> done);

}  // namespace weir::executor
