#include <atomic>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "optim/dense_pass.h"
#include "optim/hyperparameters.h"
#include "optim/kernels/kernels.h"
#include "optim/rules.h"
#include "store/dense.h"

namespace weir::optim {
namespace {

struct AdamNumbers {
  double lr;
  double beta1;
  double beta2;
  double epsilon;
};

struct AdamSlots {
  at::Tensor m;
  at::Tensor v;
  at::Tensor beta1_power;  // beta1^t of the update that comes next
  at::Tensor beta2_power;
};

std::atomic_ref<double> AtomicScalar(const at::Tensor& scalar) {
  return std::atomic_ref<double>(*scalar.mutable_data_ptr<double>());
}

// Atomic even where the rest of an update is not, so that every update is counted whoever else is
// at it. Two that run at once may still both see the power of the earlier one.
void MultiplyBy(std::atomic_ref<double> power, double factor) {
  double seen = power.load();
  while (!power.compare_exchange_weak(seen, seen * factor)) {
  }
}

template <typename T>
class AdamRule final : public UpdateRule {
 public:
  AdamRule(const RuleContext& context, const AdamNumbers& numbers, AdamSlots slots)
      : variable_(context.variable),
        use_locking_(context.spec.use_locking),
        numbers_(numbers),
        slots_(std::move(slots)),
        kernel_(FastestKernels<T>().adam) {}

  absl::StatusOr<std::uint64_t> ApplyDense(const at::Tensor& gradient) override {
    const at::Tensor g = store::ToPlain(gradient);
    return variable_->Update(use_locking_, [&](const at::Tensor& w) {
      const AdamPass<T> pass{.w = w.mutable_data_ptr<T>(),
                             .m = slots_.m.mutable_data_ptr<T>(),
                             .v = slots_.v.mutable_data_ptr<T>(),
                             .g = g.const_data_ptr<T>(),
                             .alpha = static_cast<T>(Alpha()),
                             .one_minus_beta1 = static_cast<T>(1 - numbers_.beta1),
                             .one_minus_beta2 = static_cast<T>(1 - numbers_.beta2),
                             .epsilon = static_cast<T>(numbers_.epsilon)};
      RunPass(w.numel(), variable_->block_hook(),
              [&](std::int64_t begin, std::int64_t end) { kernel_(pass, begin, end); });
      MultiplyBy(AtomicScalar(slots_.beta1_power), numbers_.beta1);
      MultiplyBy(AtomicScalar(slots_.beta2_power), numbers_.beta2);
    });
  }

 private:
  double Alpha() const {
    const double beta1_power = AtomicScalar(slots_.beta1_power).load();
    const double beta2_power = AtomicScalar(slots_.beta2_power).load();
    return numbers_.lr * std::sqrt(1 - beta2_power) / (1 - beta1_power);
  }

  const std::shared_ptr<store::Variable> variable_;
  const bool use_locking_;
  const AdamNumbers numbers_;
  const AdamSlots slots_;
  const decltype(Kernels<T>::adam) kernel_;
};

// A beta of 1 would divide by zero in the first update.
absl::Status CheckBeta(const char* name, double beta) {
  if (beta >= 0 && beta < 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " = ", beta, " must be in [0, 1)"));
}

absl::StatusOr<AdamNumbers> TakeNumbers(const OptimizerSpec& spec) {
  WEIR_ASSIGN_OR_RETURN(
      const auto values,
      (TakeHyperparameters<4>(spec, {"learning_rate", "beta1", "beta2", "epsilon"})));
  const AdamNumbers numbers{
      .lr = values[0], .beta1 = values[1], .beta2 = values[2], .epsilon = values[3]};
  WEIR_RETURN_IF_ERROR(CheckBeta("beta1", numbers.beta1));
  WEIR_RETURN_IF_ERROR(CheckBeta("beta2", numbers.beta2));
  if (numbers.epsilon < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("epsilon = ", numbers.epsilon, " must not be negative"));
  }
  return numbers;
}

// The powers are kept in double whatever the variable is: in float32, 1 - beta2^t is wrong in its
// fifth digit when training begins.
absl::StatusOr<at::Tensor> PowerSlot(const RuleContext& context, const char* name, double beta) {
  Initializer initial;
  initial.dtype = at::kDouble;
  initial.a = beta;
  return context.variable->Slot(absl::StrCat(context.scope, "/", name), initial);
}

absl::StatusOr<AdamSlots> MakeSlots(const RuleContext& context, const AdamNumbers& numbers) {
  AdamSlots slots;
  WEIR_ASSIGN_OR_RETURN(slots.m, ZeroSlot(context, "m"));
  WEIR_ASSIGN_OR_RETURN(slots.v, ZeroSlot(context, "v"));
  WEIR_ASSIGN_OR_RETURN(slots.beta1_power, PowerSlot(context, "beta1_power", numbers.beta1));
  WEIR_ASSIGN_OR_RETURN(slots.beta2_power, PowerSlot(context, "beta2_power", numbers.beta2));
  return slots;
}

template <typename T>
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdamOf(const RuleContext& context) {
  WEIR_ASSIGN_OR_RETURN(const AdamNumbers numbers, TakeNumbers(context.spec));
  WEIR_RETURN_IF_ERROR(FitNumber<T>("learning_rate", numbers.lr).status());
  WEIR_RETURN_IF_ERROR(FitNumber<T>("epsilon", numbers.epsilon).status());
  WEIR_ASSIGN_OR_RETURN(AdamSlots slots, MakeSlots(context, numbers));
  return std::make_unique<AdamRule<T>>(context, numbers, std::move(slots));
}

}  // namespace

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdam(const RuleContext& context) {
  return MakeForDtype(context, [&]<typename T>() { return MakeAdamOf<T>(context); });
}

}  // namespace weir::optim
