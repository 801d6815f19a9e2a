#include "executor/step_run.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weir::executor {

StepRun::StepRun(std::shared_ptr<const Program> program, StepEnvironment environment,
                 std::function<void(StepOutcome)> done)
    : program_(std::move(program)),
      impl_(program_->impl()),
      environment_(std::move(environment)),
      done_(std::move(done)),
      state_(impl_) {}

StepRun::~StepRun() {
  if (done_ == nullptr) return;
  Fail(absl::CancelledError(
      absl::StrCat("the step was dropped before it ended, on ", impl_.device)));
  Finish();
}

void StepRun::Start() {
  // Whoever waits for a ticket only would not hear of an abort.
  if (!impl_.ticket_counters.empty()) {
    environment_.rendezvous->NotifyAbort([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Wake();
    });
  }
  PostStretch();
}

void StepRun::PostStretch() {
  environment_.post([self = shared_from_this()] { self->RunStretch(); });
}

void StepRun::Arrive(std::uint32_t node, absl::StatusOr<Value> value) {
  {
    MutexLock lock(mutex_);
    arrivals_.push_back({node, std::move(value)});
    has_arrivals_.store(true, std::memory_order_release);
    if (std::exchange(is_running_, true)) return;
  }
  PostStretch();
}

void StepRun::Wake() {
  {
    MutexLock lock(mutex_);
    woken_ = true;
    if (std::exchange(is_running_, true)) return;
  }
  PostStretch();
}

void StepRun::RunStretch() {
  const at::AutoGradMode no_grad(false);
  for (;;) {
    RunReady();
    if (is_over()) return Finish();
    if (Rest()) return;
  }
}

bool StepRun::Rest() {
  MutexLock lock(mutex_);
  if (!arrivals_.empty() || std::exchange(woken_, false)) return false;
  WEIR_CHECK(outstanding_ > 0);
  is_running_ = false;
  return true;
}

void StepRun::RunReady() {
  for (;;) {
    HandleArrivals();
    if (failed() || state_.all_complete()) return;
    CheckAbort();
    if (failed()) return;
    const std::uint32_t node = state_.TakeReady();
    if (node == kNone) return;
    RunNode(node);
  }
}

// Called by a node that is running. What arrives is looked at too: a gradient may wait for a ticket
// only.
void StepRun::RunEager() {
  HandleArrivals();
  while (!failed()) {
    const std::uint32_t node = state_.TakeReadyEager();
    if (node == kNone) return;
    RunNode(node);
    HandleArrivals();
  }
}

void StepRun::HandleArrivals() {
  while (has_arrivals_.load(std::memory_order_acquire)) {
    {
      MutexLock lock(mutex_);
      taken_.swap(arrivals_);
      has_arrivals_.store(false, std::memory_order_relaxed);
    }
    for (Arrival& arrival : taken_) Handle(arrival);
    taken_.clear();
  }
}

void StepRun::Handle(Arrival& arrival) {
  --outstanding_;
  if (failed()) return;
  if (!arrival.value.ok()) {
    CheckAbort();
    if (!failed()) FailNode(arrival.node, arrival.value.status());
    return;
  }
  const absl::Status status = TryAccept(arrival.node, *std::move(arrival.value));
  if (!status.ok()) FailNode(arrival.node, status);
}

absl::Status StepRun::TryAccept(std::uint32_t node, Value value) {
  try {
    NodeContext context(*this, state_, node);
    WEIR_RETURN_IF_ERROR(impl_.kernels[node]->Accept(context, std::move(value)));
    state_.Complete(node);
    return absl::OkStatus();
  } catch (...) {
    return CurrentExceptionToStatus(absl::StatusCode::kInternal, impl_.labels[node]);
  }
}

void StepRun::RunNode(std::uint32_t node) {
  const absl::Status status = TryRunNode(node);
  if (!status.ok()) FailNode(node, status);
}

absl::Status StepRun::TryRunNode(std::uint32_t node) {
  try {
    state_.PrepareInputs(node);
    NodeContext context(*this, state_, node);
    const at::AutoGradMode grad(impl_.layout.nodes[node].recorded);
    WEIR_RETURN_IF_ERROR(impl_.kernels[node]->Run(context));
    if (!context.deferred()) state_.Complete(node);
    return absl::OkStatus();
  } catch (...) {
    return CurrentExceptionToStatus(absl::StatusCode::kInternal, impl_.labels[node]);
  }
}

void StepRun::CheckAbort() {
  const absl::Status status = environment_.rendezvous->status();
  if (!status.ok()) Fail(status);
}

void StepRun::FailNode(std::uint32_t node, const absl::Status& status) {
  const std::string context = impl_.kernels[node]->names_node()
                                  ? impl_.device
                                  : absl::StrCat(impl_.labels[node], " on ", impl_.device);
  Fail(Annotate(status, context));
}

// The first error of the step counts, whichever partition it came from.
void StepRun::Fail(const absl::Status& status) {
  if (failed()) return;
  outcome_.status = status;
  environment_.rendezvous->Abort(status);
  outcome_.status = environment_.rendezvous->status();
  ReleaseTickets();
}

// A no-op for a step that has completed.
void StepRun::ReleaseTickets() {
  for (const auto& counter : impl_.ticket_counters) counter->tickets().Release(environment_.id);
}

void StepRun::Finish() {
  ReleaseTickets();
  if (failed()) outcome_.fetches.clear();
  state_.Clear();
  environment_.feeds.clear();
  // The rest of the environment stays until nobody is inside it: this may run inside `post`.
  const auto done = std::exchange(done_, nullptr);
  done(std::move(outcome_));
}

const at::Tensor* StepRun::feed(std::int64_t index) const {
  const auto position = static_cast<std::size_t>(index);
  return position < environment_.feeds.size() ? &environment_.feeds[position] : nullptr;
}

void StepRun::AddFetch(int index, at::Tensor tensor) {
  if (tensor.defined() && IsStorageInUse(tensor)) tensor = tensor.clone();
  outcome_.fetches.emplace_back(index, std::move(tensor));
}

bool StepRun::IsStorageInUse(const at::Tensor& tensor) const {
  if (!tensor.has_storage()) return false;
  const void* storage = tensor.storage().data();
  const auto contains = [storage](const std::vector<const void*>& storages) {
    return std::find(storages.begin(), storages.end(), storage) != storages.end();
  };
  return contains(impl_.constants) || contains(in_place_reads_);
}

void StepRun::NoteInPlaceRead(const at::Tensor& tensor) {
  in_place_reads_.push_back(tensor.storage().data());
}

void StepRun::Send(const SendEdge& edge, Value value) {
  environment_.send(edge, std::move(value));
}

void StepRun::Receive(std::uint32_t edge, Completion done) {
  environment_.rendezvous->RecvAsync(edge, std::move(done));
}

Completion StepRun::Defer(std::uint32_t node) {
  ++outstanding_;
  return [self = shared_from_this(), node](absl::StatusOr<Value> value) {
    self->Arrive(node, std::move(value));
  };
}

void StartStep(std::shared_ptr<const Program> program, StepEnvironment environment,
               std::function<void(StepOutcome)> done) {
  std::make_shared<StepRun>(std::move(program), std::move(environment), std::move(done))->Start();
}

}  // namespace weir::executor
