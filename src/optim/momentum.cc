#include "optim/elementwise_rule.h"

namespace weir {

Momentum::operator OptimizerSpec() const {
  return {.rule = "Momentum",
          .learning_rate = learning_rate,
          .hyperparameters = {{"momentum", momentum}, {"use_nesterov", use_nesterov ? 1.0 : 0.0}},
          .use_locking = use_locking};
}

namespace optim {
namespace {

template <typename StepOfT>
struct MomentumNumbers {
  using Step = StepOfT;
  using T = typename Step::Number;
  T momentum;
  Step At(double rate, std::int64_t) const {
    return {.lr = static_cast<T>(rate), .momentum = momentum};
  }
};

template <typename Step>
RuleOr MakeWith(const RuleContext& context, double momentum) {
  WEIR_ASSIGN_OR_RETURN(at::Tensor slot, FilledSlot(context, "momentum", 0));
  using Numbers = MomentumNumbers<Step>;
  return MakeElementwise(context, Numbers{.momentum = static_cast<typename Numbers::T>(momentum)},
                         {std::move(slot)});
}

}  // namespace

RuleOr MakeMomentum(const RuleContext& context) {
  WEIR_ASSIGN_OR_RETURN(const auto values,
                        (TakeHyperparameters<2>(context, {"momentum", "use_nesterov"})));
  const double momentum = values[0];
  const bool use_nesterov = values[1] != 0;
  return MakeForDtype(context, [&]<typename T>() {
    return use_nesterov ? MakeWith<NesterovStep<T>>(context, momentum)
                        : MakeWith<MomentumStep<T>>(context, momentum);
  });
}

}  // namespace optim
}  // namespace weir
