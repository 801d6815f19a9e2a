#include "runtime/local_session.h"

#include <utility>

#include "base/status.h"
#include "runtime/session_backend.h"
#include "runtime/session_impl.h"

namespace weir::runtime {
namespace {

struct LocalPlan final : SessionBackend::Plan {
  std::shared_ptr<const MasterPlan> plan;
};

class LocalBackend final : public SessionBackend {
 public:
  LocalBackend(Master* master, std::shared_ptr<MasterSession> session)
      : master_(master), session_(std::move(session)) {}

  absl::StatusOr<std::shared_ptr<const Plan>> MakePlan(const graph::Signature& signature) override {
    auto plan = std::make_shared<LocalPlan>();
    WEIR_ASSIGN_OR_RETURN(plan->plan, session_->MakePlan(signature));
    plan->dump = plan->plan->dump;
    return plan;
  }

  bool IsStale(const Plan& plan) const override {
    return static_cast<const LocalPlan&>(plan).plan->stale;
  }

  absl::StatusOr<StepResult> RunStep(const std::shared_ptr<const Plan>& plan,
                                     std::vector<at::Tensor> feeds, TimePoint deadline,
                                     const std::shared_ptr<Driver>& driver) override {
    return master_->RunStep(session_, static_cast<const LocalPlan&>(*plan).plan, std::move(feeds),
                            deadline, driver);
  }

  absl::Status Close() override {
    session_->Close();
    return absl::OkStatus();
  }

 private:
  Master* const master_;
  const std::shared_ptr<MasterSession> session_;
};

}  // namespace

Session MakeLocalSession(Master* master, std::shared_ptr<MasterSession> session, const Graph& graph,
                         const SessionOptions& options, Scheduler* scheduler) {
  return Session(std::make_unique<SessionImpl>(
      std::make_unique<LocalBackend>(master, std::move(session)), graph, options, scheduler));
}

}  // namespace weir::runtime
