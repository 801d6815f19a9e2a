#include "optim/elementwise_rule.h"

namespace weir {

ProximalAdagrad::operator OptimizerSpec() const {
  return {.rule = "ProximalAdagrad",
          .learning_rate = learning_rate,
          .hyperparameters = {{"initial_accumulator_value", initial_accumulator_value},
                              {"l1", l1},
                              {"l2", l2}},
          .use_locking = use_locking};
}

namespace optim {
namespace {

template <typename T>
struct ProximalAdagradNumbers {
  using Step = ProximalAdagradStep<T>;
  double l1;
  double l2;
  Step At(double rate, std::int64_t) const {
    return {.lr = static_cast<T>(rate), .l1 = static_cast<T>(l1), .l2 = static_cast<T>(l2)};
  }
};

}  // namespace

RuleOr MakeProximalAdagrad(const RuleContext& context) {
  WEIR_ASSIGN_OR_RETURN(
      const auto values,
      (TakeHyperparameters<3>(context, {"initial_accumulator_value", "l1", "l2"})));
  const auto [initial, l1, l2] = values;
  WEIR_RETURN_IF_ERROR(CheckPositive(context, "initial_accumulator_value", initial));
  WEIR_RETURN_IF_ERROR(CheckNotNegative("l1", l1));
  WEIR_RETURN_IF_ERROR(CheckNotNegative("l2", l2));
  WEIR_ASSIGN_OR_RETURN(at::Tensor slot, FilledSlot(context, "accumulator", initial));
  return MakeForDtype(context, [&]<typename T>() {
    return MakeElementwise(context, ProximalAdagradNumbers<T>{.l1 = l1, .l2 = l2},
                           {std::move(slot)});
  });
}

}  // namespace optim
}  // namespace weir
