// The strand that drives one step.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "executor/kernel.h"
#include "executor/program_impl.h"
#include "executor/step.h"
#include "executor/step_state.h"

namespace weir::executor {

/// Runs in stretches: each runs every node that is ready, then the strand rests until a value or a
/// ticket arrives. Arrivals come from any thread and are only queued; whoever finds the strand at
/// rest posts its next stretch. So everything but the queue belongs to one thread at a time, and a
/// callback that comes from inside a stretch never starts another.
///
/// Kept alive by whatever may still call it: a posted stretch, a callback that is due. If those are
/// dropped uncalled (a closed scheduler) the step ends with Cancelled.
class StepRun final : public StepHost, public std::enable_shared_from_this<StepRun> {
 public:
  StepRun(std::shared_ptr<const Program> program, StepEnvironment environment,
          std::function<void(StepOutcome)> done);
  ~StepRun() override;

  void Start();

  const store::StepId& id() const override { return environment_.id; }
  const at::Tensor* feed(std::int64_t index) const override;
  void AddFetch(int index, at::Tensor tensor) override;
  void Send(const SendEdge& edge, Value value) override;
  void Receive(std::uint32_t edge, Completion done) override;
  void HoldTicket(std::uint64_t ticket) override { outcome_.ticket = ticket; }
  void NoteInPlaceRead(const at::Tensor& tensor) override;
  Completion Defer(std::uint32_t node) override;
  void RunEager() override;

 private:
  struct Arrival {
    std::uint32_t node = 0;
    absl::StatusOr<Value> value;
  };

  // Any thread.
  void Arrive(std::uint32_t node, absl::StatusOr<Value> value);
  void Wake();
  void PostStretch();

  // The strand.
  void RunStretch();
  void HandleArrivals();
  void Handle(Arrival& arrival);
  void RunReady();
  void RunNode(std::uint32_t node);
  absl::Status TryRunNode(std::uint32_t node);
  absl::Status TryAccept(std::uint32_t node, Value value);
  /// Ends the step when somebody has aborted it.
  void CheckAbort();
  void FailNode(std::uint32_t node, const absl::Status& status);
  void Fail(const absl::Status& status);
  bool failed() const { return !outcome_.status.ok(); }
  bool is_over() const { return outstanding_ == 0 && (failed() || state_.all_complete()); }
  /// False when something arrived meanwhile: then the stretch goes on. Else the strand may be
  /// another thread's already.
  bool Rest();
  /// True for what a constant or a variable goes on using.
  bool IsStorageInUse(const at::Tensor& tensor) const;
  void ReleaseTickets();
  void Finish();

  const std::shared_ptr<const Program> program_;
  const ProgramImpl& impl_;
  StepEnvironment environment_;
  std::function<void(StepOutcome)> done_;

  StepState state_;
  StepOutcome outcome_;
  int outstanding_ = 0;  // deferred nodes
  std::vector<const void*> in_place_reads_;
  std::vector<Arrival> taken_;  // by HandleArrivals

  Mutex mutex_;
  bool is_running_ WEIR_GUARDED_BY(mutex_) = true;  // or posted
  std::vector<Arrival> arrivals_ WEIR_GUARDED_BY(mutex_);
  bool woken_ WEIR_GUARDED_BY(mutex_) = false;
  std::atomic<bool> has_arrivals_{false};  // !arrivals_.empty(), readable without the lock
};

}  // namespace weir::executor
