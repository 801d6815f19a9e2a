#include <utility>

#include "optim/dense_pass.h"
#include "optim/hyperparameters.h"
#include "optim/kernels/kernels.h"
#include "optim/rules.h"
#include "store/dense.h"

namespace weir::optim {
namespace {

template <typename T>
struct MomentumNumbers {
  T lr;
  T momentum;
  bool use_nesterov;
};

template <typename T>
class MomentumRule final : public UpdateRule {
 public:
  MomentumRule(const RuleContext& context, MomentumNumbers<T> numbers, at::Tensor slot)
      : variable_(context.variable),
        use_locking_(context.spec.use_locking),
        numbers_(numbers),
        slot_(std::move(slot)),
        kernel_(FastestKernels<T>().momentum) {}

  absl::StatusOr<std::uint64_t> ApplyDense(const at::Tensor& gradient) override {
    const at::Tensor g = store::ToPlain(gradient);
    return variable_->Update(use_locking_, [&](const at::Tensor& w) {
      const MomentumPass<T> pass{.w = w.mutable_data_ptr<T>(),
                                 .a = slot_.mutable_data_ptr<T>(),
                                 .g = g.const_data_ptr<T>(),
                                 .lr = numbers_.lr,
                                 .momentum = numbers_.momentum,
                                 .use_nesterov = numbers_.use_nesterov};
      RunPass(w.numel(), variable_->block_hook(),
              [&](std::int64_t begin, std::int64_t end) { kernel_(pass, begin, end); });
    });
  }

 private:
  const std::shared_ptr<store::Variable> variable_;
  const bool use_locking_;
  const MomentumNumbers<T> numbers_;
  const at::Tensor slot_;
  const decltype(Kernels<T>::momentum) kernel_;
};

template <typename T>
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeMomentumOf(const RuleContext& context) {
  WEIR_ASSIGN_OR_RETURN(
      const auto values,
      (TakeHyperparameters<3>(context.spec, {"learning_rate", "momentum", "use_nesterov"})));
  MomentumNumbers<T> numbers{.lr = 0, .momentum = 0, .use_nesterov = values[2] != 0};
  WEIR_ASSIGN_OR_RETURN(numbers.lr, FitNumber<T>("learning_rate", values[0]));
  WEIR_ASSIGN_OR_RETURN(numbers.momentum, FitNumber<T>("momentum", values[1]));
  WEIR_ASSIGN_OR_RETURN(at::Tensor slot, ZeroSlot(context, "momentum"));
  return std::make_unique<MomentumRule<T>>(context, numbers, std::move(slot));
}

}  // namespace

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeMomentum(const RuleContext& context) {
  return MakeForDtype(context, [&]<typename T>() { return MakeMomentumOf<T>(context); });
}

}  // namespace weir::optim
