#include "optim/elementwise_rule.h"

namespace weir {

RmsProp::operator OptimizerSpec() const {
  return {.rule = "RMSProp",
          .learning_rate = learning_rate,
          .hyperparameters = {{"decay", decay},
                              {"momentum", momentum},
                              {"epsilon", epsilon},
                              {"centered", centered ? 1.0 : 0.0}},
          .use_locking = use_locking};
}

namespace optim {
namespace {

template <typename StepOfT>
struct RmsPropNumbers {
  using Step = StepOfT;
  using T = typename Step::Number;
  double decay;
  double momentum;
  double epsilon;
  Step At(double rate, std::int64_t) const {
    return {.lr = static_cast<T>(rate),
            .one_minus_decay = static_cast<T>(1 - decay),
            .mu = static_cast<T>(momentum),
            .epsilon = static_cast<T>(epsilon)};
  }
};

}  // namespace

RuleOr MakeRmsProp(const RuleContext& context) {
  WEIR_ASSIGN_OR_RETURN(
      const auto values,
      (TakeHyperparameters<4>(context, {"decay", "momentum", "epsilon", "centered"})));
  const auto [decay, momentum, epsilon, centered] = values;
  WEIR_RETURN_IF_ERROR(CheckBelowOne("decay", decay));
  WEIR_RETURN_IF_ERROR(CheckNotNegative("momentum", momentum));
  WEIR_RETURN_IF_ERROR(CheckNotNegative("epsilon", epsilon));
  WEIR_ASSIGN_OR_RETURN(at::Tensor rms, FilledSlot(context, "rms", 1));
  WEIR_ASSIGN_OR_RETURN(at::Tensor sum, FilledSlot(context, "momentum", 0));
  if (centered == 0) {
    return MakeForDtype(context, [&, &values = values]<typename T>() {
      return MakeElementwise(context,
                             RmsPropNumbers<RmsPropStep<T>>{values[0], values[1], values[2]},
                             {std::move(rms), std::move(sum)});
    });
  }
  WEIR_ASSIGN_OR_RETURN(at::Tensor mean, FilledSlot(context, "mg", 0));
  return MakeForDtype(context, [&, &values = values]<typename T>() {
    return MakeElementwise(context,
                           RmsPropNumbers<CenteredRmsPropStep<T>>{values[0], values[1], values[2]},
                           {std::move(rms), std::move(sum), std::move(mean)});
  });
}

}  // namespace optim
}  // namespace weir
