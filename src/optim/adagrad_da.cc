#include "optim/elementwise_rule.h"

namespace weir {

AdagradDa::operator OptimizerSpec() const {
  return {.rule = "AdagradDA",
          .learning_rate = learning_rate,
          .hyperparameters = {{"initial_gradient_squared_accumulator_value",
                               initial_gradient_squared_accumulator_value},
                              {"l1", l1},
                              {"l2", l2}},
          .use_locking = use_locking,
          .counts_steps = true};
}

namespace optim {
namespace {

template <typename T>
struct AdagradDaNumbers {
  using Step = AdagradDaStep<T>;
  // A rate of 0 would make every weight 0.
  static constexpr bool kNeedsPositiveRate = true;
  static constexpr bool kCountsSteps = true;
  double l1;
  double l2;
  Step At(double rate, std::int64_t step) const {
    const double t = static_cast<double>(step) + 1;
    return {.lr = static_cast<T>(rate),
            .l1_t = static_cast<T>(l1 * t),
            .l2_t_lr = static_cast<T>(l2 * t * rate)};
  }
};

}  // namespace

RuleOr MakeAdagradDa(const RuleContext& context) {
  WEIR_ASSIGN_OR_RETURN(const auto values,
                        (TakeHyperparameters<3>(
                            context, {"initial_gradient_squared_accumulator_value", "l1", "l2"})));
  const auto [initial, l1, l2] = values;
  WEIR_RETURN_IF_ERROR(
      CheckPositive(context, "initial_gradient_squared_accumulator_value", initial));
  WEIR_RETURN_IF_ERROR(CheckNotNegative("l1", l1));
  WEIR_RETURN_IF_ERROR(CheckNotNegative("l2", l2));
  WEIR_ASSIGN_OR_RETURN(at::Tensor sum, FilledSlot(context, "gradient_accumulator", 0));
  WEIR_ASSIGN_OR_RETURN(at::Tensor squares,
                        FilledSlot(context, "gradient_squared_accumulator", initial));
  return MakeForDtype(context, [&]<typename T>() {
    return MakeElementwise(context, AdagradDaNumbers<T>{.l1 = l1, .l2 = l2},
                           {std::move(sum), std::move(squares)});
  });
}

}  // namespace optim
}  // namespace weir
