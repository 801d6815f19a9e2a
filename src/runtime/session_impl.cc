#include "runtime/session_impl.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "graph/op_registry.h"

namespace weir {
namespace {

std::int64_t StepLimit(const GraphDef& graph) {
  std::int64_t limit = -1;
  for (const Node& node : graph.nodes) {
    if (node.op == "Ticket")
      limit = std::max(limit, graph::AttrOr<std::int64_t>(node, "limit", -1));
  }
  return limit;
}

graph::Signature MakeSignature(const std::vector<Output>& feeds, const std::vector<Output>& fetches,
                               const std::vector<Operation>& targets) {
  graph::Signature signature;
  for (const Output& feed : feeds) signature.feeds.push_back(feed.name());
  for (const Output& fetch : fetches) signature.fetches.push_back(fetch.name());
  for (const Operation& target : targets) signature.targets.push_back(target.name());
  return signature;
}

}  // namespace

SessionImpl::SessionImpl(std::unique_ptr<runtime::SessionBackend> backend, const Graph& graph,
                         const SessionOptions& options, Scheduler* scheduler)
    : backend_(std::move(backend)),
      graph_(graph),
      options_(options),
      scheduler_(scheduler),
      step_limit_(StepLimit(graph.def())) {}

SessionImpl::~SessionImpl() {
  Close().IgnoreError();
}

absl::StatusOr<RunResult> SessionImpl::Run(const std::vector<Feed>& feeds,
                                           const std::vector<Output>& fetches,
                                           const std::vector<Operation>& targets,
                                           const RunOptions& options) {
  const auto timeout = options.timeout.count() > 0 ? options.timeout : options_.step_timeout;
  const TimePoint deadline = scheduler_->Now() + timeout;
  std::vector<Output> fed;
  std::vector<at::Tensor> tensors;
  Key key;
  for (const auto& [output, tensor] : feeds) {
    fed.push_back(output);
    tensors.push_back(tensor);
    key.insert(key.end(), {output.node(), output.index()});
  }
  key.push_back(-1);
  for (const Output& fetch : fetches) key.insert(key.end(), {fetch.node(), fetch.index()});
  key.push_back(-1);
  for (const Operation& target : targets) key.push_back(target.node());

  WEIR_ASSIGN_OR_RETURN(const auto plan, FindPlan(key, fed, fetches, targets));
  auto driver = TakeDriver();
  WEIR_RETURN_IF_ERROR(EnterStep(deadline, driver));
  auto result = backend_->RunStep(plan, std::move(tensors), deadline, driver);
  LeaveStep();
  ReturnDriver(std::move(driver));
  NoteStop(result);
  WEIR_RETURN_IF_ERROR(result.status());
  RunResult run{.fetches = std::move(result->fetches), .step = result->ticket};
  if (observer_) observer_({.step = run.step, .fetches = &fetches, .values = &run.fetches});
  return run;
}

absl::StatusOr<std::string> SessionImpl::DumpPlan(const std::vector<Output>& feeds,
                                                  const std::vector<Output>& fetches,
                                                  const std::vector<Operation>& targets) {
  WEIR_RETURN_IF_ERROR(CheckGraph(feeds, fetches, targets));
  WEIR_ASSIGN_OR_RETURN(const auto plan,
                        backend_->MakePlan(MakeSignature(feeds, fetches, targets)));
  return plan->dump;
}

absl::StatusOr<std::shared_ptr<const runtime::SessionBackend::Plan>> SessionImpl::FindPlan(
    const Key& key, const std::vector<Output>& feeds, const std::vector<Output>& fetches,
    const std::vector<Operation>& targets) {
  // The key tells nodes apart only within one graph.
  WEIR_RETURN_IF_ERROR(CheckGraph(feeds, fetches, targets));
  {
    MutexLock lock(mutex_);
    const auto it = plans_.find(key);
    if (it != plans_.end() && !backend_->IsStale(*it->second)) return it->second;
  }
  WEIR_ASSIGN_OR_RETURN(auto plan, backend_->MakePlan(MakeSignature(feeds, fetches, targets)));
  MutexLock lock(mutex_);
  if (plans_.size() >= static_cast<std::size_t>(std::max(1, options_.max_plans))) plans_.clear();
  plans_[key] = plan;
  return plan;
}

absl::Status SessionImpl::CheckGraph(const std::vector<Output>& feeds,
                                     const std::vector<Output>& fetches,
                                     const std::vector<Operation>& targets) const {
  const auto is_foreign = [this](const auto& handle) { return handle.graph() != &graph_; };
  const char* what = nullptr;
  if (std::any_of(feeds.begin(), feeds.end(), is_foreign)) what = "feed";
  if (std::any_of(fetches.begin(), fetches.end(), is_foreign)) what = "fetch";
  if (std::any_of(targets.begin(), targets.end(), is_foreign)) what = "target";
  if (what == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("a %s that is not of the session's graph, or was never assigned", what));
}

absl::Status SessionImpl::EnterStep(TimePoint deadline, const std::shared_ptr<Driver>& driver) {
  const auto try_enter = [this] {
    MutexLock lock(mutex_);
    if (steps_in_flight_ >= std::max(1, options_.max_steps_in_flight)) return false;
    ++steps_in_flight_;
    return true;
  };
  if (try_enter()) return absl::OkStatus();
  {
    MutexLock lock(mutex_);
    waiting_.push_back(driver);
  }
  const bool entered = driver->RunUntil(try_enter, deadline);
  {
    MutexLock lock(mutex_);
    std::erase(waiting_, driver);
  }
  if (entered) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrFormat("%d steps of this session are in flight, none has ended in time",
                      options_.max_steps_in_flight));
}

void SessionImpl::LeaveStep() {
  std::vector<std::shared_ptr<Driver>> waiting;
  {
    MutexLock lock(mutex_);
    --steps_in_flight_;
    waiting.assign(waiting_.begin(), waiting_.end());
  }
  for (const auto& driver : waiting) driver->Post([] {});
}

std::shared_ptr<Driver> SessionImpl::TakeDriver() {
  {
    MutexLock lock(mutex_);
    if (!drivers_.empty()) {
      auto driver = std::move(drivers_.back());
      drivers_.pop_back();
      return driver;
    }
  }
  return scheduler_->NewDriver();
}

void SessionImpl::ReturnDriver(std::shared_ptr<Driver> driver) {
  MutexLock lock(mutex_);
  drivers_.push_back(std::move(driver));
}

void SessionImpl::NoteStop(const absl::StatusOr<runtime::StepResult>& result) {
  const bool last =
      result.ok() && step_limit_ >= 0 && result->ticket >= static_cast<std::uint64_t>(step_limit_);
  if (last || absl::IsOutOfRange(result.status())) stop_ = true;
}

absl::Status SessionImpl::Close() {
  {
    MutexLock lock(mutex_);
    plans_.clear();
  }
  return backend_->Close();
}

Session::Session(std::unique_ptr<SessionImpl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

absl::StatusOr<RunResult> Session::Run(const std::vector<Feed>& feeds,
                                       const std::vector<Output>& fetches,
                                       const std::vector<Operation>& targets,
                                       const RunOptions& options) {
  return impl_->Run(feeds, fetches, targets, options);
}

absl::StatusOr<std::string> Session::DumpPlan(const std::vector<Output>& feeds,
                                              const std::vector<Output>& fetches,
                                              const std::vector<Operation>& targets) {
  return impl_->DumpPlan(feeds, fetches, targets);
}

bool Session::ShouldStop() const {
  return impl_->ShouldStop();
}
void Session::RequestStop() {
  impl_->RequestStop();
}
void Session::SetObserver(std::function<void(const StepReport&)> observer) {
  impl_->SetObserver(std::move(observer));
}
absl::Status Session::Close() {
  return impl_->Close();
}

}  // namespace weir
