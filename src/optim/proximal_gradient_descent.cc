#include "optim/elementwise_rule.h"

namespace weir {

ProximalGradientDescent::operator OptimizerSpec() const {
  return {.rule = "ProximalGradientDescent",
          .learning_rate = learning_rate,
          .hyperparameters = {{"l1", l1}, {"l2", l2}},
          .use_locking = use_locking};
}

namespace optim {
namespace {

template <typename T>
struct ProximalGradientDescentNumbers {
  using Step = ProximalGradientDescentStep<T>;
  double l1;
  double l2;
  Step At(double rate, std::int64_t) const {
    return {.lr = static_cast<T>(rate),
            .lr_l1 = static_cast<T>(rate * l1),
            .one_plus_lr_l2 = static_cast<T>(1 + rate * l2)};
  }
};

}  // namespace

RuleOr MakeProximalGradientDescent(const RuleContext& context) {
  WEIR_ASSIGN_OR_RETURN(const auto values, (TakeHyperparameters<2>(context, {"l1", "l2"})));
  const auto [l1, l2] = values;
  WEIR_RETURN_IF_ERROR(CheckNotNegative("l1", l1));
  WEIR_RETURN_IF_ERROR(CheckNotNegative("l2", l2));
  return MakeForDtype(context, [&]<typename T>() {
    return MakeElementwise(context, ProximalGradientDescentNumbers<T>{.l1 = l1, .l2 = l2}, {});
  });
}

}  // namespace optim
}  // namespace weir
