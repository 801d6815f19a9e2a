// Where workers meet before they train, and wait for each other when they leave.
//
// Each worker writes a token of its process into its slot of a variable. The variable outlives the
// workers where a ps serves for long, so a slot proves nothing by itself: a token counts once its
// process has answered for it. Hence
//
//   - a later job on the same ps waits for its own workers, however the earlier ones ended;
//   - a worker that crashed and came back is one worker, and one that comes back while the others
//     train does not wait;
//   - a worker may have trained and gone before another looks: whoever finds enough workers writes
//     down their tokens, and who is among them goes on.
//
// Not covered: a worker that comes back when the others have ended waits for them, as the first
// worker of a next job does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "weir/graph.h"
#include "weir/session.h"

namespace weir::cli {

/// The part of a graph, and of a loop's two ends, that does so. Add it before the session is
/// opened; every worker of a job adds the same. One thread.
class WorkerBarrier {
 public:
  /// Whether the process with this token is running as worker `slot`; may block for a little.
  using IsAlive = std::function<bool(int slot, std::int64_t token)>;

  struct Options {
    std::string device;              // of the variables
    std::vector<std::string> names;  // of who might take part, one a slot; "" is never missed
    int own_slot = 0;                // one of them
    std::int64_t token = 0;          // MakeToken of this process
    IsAlive is_alive;
  };

  /// Of a process, by its incarnation; never 0.
  static std::int64_t MakeToken(std::uint64_t incarnation);

  WorkerBarrier(Graph& graph, Options options);

  /// Takes this worker's slot and blocks until `workers` are there. Logs a line every 5 s;
  /// DeadlineExceeded says how many are there and who is not.
  absl::Status Meet(Session& session, int workers, Duration timeout, Logger& logger);

  /// Gives the slot up: this worker needs the others no more.
  absl::Status Leave(Session& session);
  /// Blocks until every other worker has left, or is no more. DeadlineExceeded says how many stay.
  absl::Status AwaitOthers(Session& session, Duration timeout, Logger& logger);

 private:
  using Tokens = std::vector<std::int64_t>;

  absl::Status SetSlot(Session& session, std::int64_t value);
  absl::StatusOr<Tokens> Look(Session& session, const Variable& variable);
  /// The tokens of `slots` whose processes run; 0 for others.
  Tokens Alive(const Tokens& slots);
  bool Asked(int slot, std::int64_t token);
  /// Who is not among `alive`, for a message: the first few by name.
  std::string Missing(const Tokens& alive) const;
  /// Calls `what_lacks` every few milliseconds until it says that nothing does ("").
  absl::Status Poll(Duration timeout, Logger& logger,
                    const std::function<absl::StatusOr<std::string>()>& what_lacks);

  struct Answer {
    std::int64_t token = 0;
    bool alive = false;
    TimePoint at;
  };

  const Options options_;
  Variable slots_, met_;
  Output delta_, members_;
  Operation add_to_slots_, write_met_;
  std::map<int, Answer> answers_;  // by slot
};

}  // namespace weir::cli
