#include "optim/adam_state.h"

#include <atomic>
#include <utility>

namespace weir::optim {
namespace {

std::atomic_ref<double> AtomicScalar(const at::Tensor& scalar) {
  return std::atomic_ref<double>(*scalar.mutable_data_ptr<double>());
}

void MultiplyBy(std::atomic_ref<double> power, double factor) {
  double seen = power.load();
  while (!power.compare_exchange_weak(seen, seen * factor)) {
  }
}

}  // namespace

absl::StatusOr<BetaPowers> BetaPowers::Make(const RuleContext& context, double beta1,
                                            double beta2) {
  WEIR_RETURN_IF_ERROR(CheckBelowOne("beta1", beta1));
  WEIR_RETURN_IF_ERROR(CheckBelowOne("beta2", beta2));
  BetaPowers powers;
  powers.beta1_ = beta1;
  powers.beta2_ = beta2;
  WEIR_ASSIGN_OR_RETURN(powers.power1_, ScalarSlot(context, "beta1_power", beta1));
  WEIR_ASSIGN_OR_RETURN(powers.power2_, ScalarSlot(context, "beta2_power", beta2));
  return powers;
}

double BetaPowers::one_minus_power1() const {
  return 1 - AtomicScalar(power1_).load();
}

double BetaPowers::one_minus_power2() const {
  return 1 - AtomicScalar(power2_).load();
}

void BetaPowers::Advance() const {
  MultiplyBy(AtomicScalar(power1_), beta1_);
  MultiplyBy(AtomicScalar(power2_), beta2_);
}

absl::StatusOr<std::array<at::Tensor, 2>> MakeMoments(const RuleContext& context) {
  WEIR_ASSIGN_OR_RETURN(at::Tensor m, FilledSlot(context, "m", 0));
  WEIR_ASSIGN_OR_RETURN(at::Tensor v, FilledSlot(context, "v", 0));
  return std::array{std::move(m), std::move(v)};
}

}  // namespace weir::optim
