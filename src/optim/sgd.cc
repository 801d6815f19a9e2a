#include <utility>

#include "optim/dense_pass.h"
#include "optim/hyperparameters.h"
#include "optim/kernels/kernels.h"
#include "optim/rules.h"
#include "store/dense.h"

namespace weir::optim {
namespace {

template <typename T>
class SgdRule final : public UpdateRule {
 public:
  SgdRule(const RuleContext& context, T minus_lr)
      : variable_(context.variable),
        use_locking_(context.spec.use_locking),
        minus_lr_(minus_lr),
        kernel_(FastestKernels<T>().sgd) {}

  absl::StatusOr<std::uint64_t> ApplyDense(const at::Tensor& gradient) override {
    const at::Tensor g = store::ToPlain(gradient);
    return variable_->Update(use_locking_, [&](const at::Tensor& w) {
      const SgdPass<T> pass{
          .w = w.mutable_data_ptr<T>(), .g = g.const_data_ptr<T>(), .minus_lr = minus_lr_};
      RunPass(w.numel(), variable_->block_hook(),
              [&](std::int64_t begin, std::int64_t end) { kernel_(pass, begin, end); });
    });
  }

 private:
  const std::shared_ptr<store::Variable> variable_;
  const bool use_locking_;
  const T minus_lr_;
  const decltype(Kernels<T>::sgd) kernel_;
};

template <typename T>
absl::StatusOr<std::unique_ptr<UpdateRule>> MakeSgdOf(const RuleContext& context) {
  WEIR_ASSIGN_OR_RETURN(const auto values,
                        (TakeHyperparameters<1>(context.spec, {"learning_rate"})));
  WEIR_ASSIGN_OR_RETURN(const T minus_lr, FitNumber<T>("learning_rate", -values[0]));
  return std::make_unique<SgdRule<T>>(context, minus_lr);
}

}  // namespace

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeSgd(const RuleContext& context) {
  return MakeForDtype(context, [&]<typename T>() { return MakeSgdOf<T>(context); });
}

}  // namespace weir::optim
