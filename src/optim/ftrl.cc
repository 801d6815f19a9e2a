#include "optim/elementwise_rule.h"

namespace weir {

Ftrl::operator OptimizerSpec() const {
  return {.rule = "Ftrl",
          .learning_rate = learning_rate,
          .hyperparameters = {{"learning_rate_power", learning_rate_power},
                              {"initial_accumulator_value", initial_accumulator_value},
                              {"l1", l1},
                              {"l2", l2},
                              {"l2_shrinkage", l2_shrinkage}},
          .use_locking = use_locking};
}

namespace optim {
namespace {

struct Penalties {
  double l1;
  double l2;
  double l2_shrinkage;
};

template <typename T, typename Root>
struct FtrlNumbers {
  using Step = FtrlStep<T, Root>;
  // The rule divides by the rate.
  static constexpr bool kNeedsPositiveRate = true;
  Penalties penalties;
  Root root;
  Step At(double rate, std::int64_t) const {
    return {.lr = static_cast<T>(rate),
            .l1 = static_cast<T>(penalties.l1),
            .two_l2 = static_cast<T>(2 * penalties.l2),
            .two_shrinkage = static_cast<T>(2 * penalties.l2_shrinkage),
            .root = root};
  }
};

template <typename T, typename Root>
RuleOr MakeWith(const RuleContext& context, const Penalties& penalties, const Root& root,
                double initial) {
  WEIR_ASSIGN_OR_RETURN(at::Tensor n, FilledSlot(context, "accum", initial));
  WEIR_ASSIGN_OR_RETURN(at::Tensor z, FilledSlot(context, "linear", 0));
  return MakeElementwise(context, FtrlNumbers<T, Root>{.penalties = penalties, .root = root},
                         {std::move(n), std::move(z)});
}

}  // namespace

RuleOr MakeFtrl(const RuleContext& context) {
  WEIR_ASSIGN_OR_RETURN(
      const auto values,
      (TakeHyperparameters<5>(context, {"learning_rate_power", "initial_accumulator_value", "l1",
                                        "l2", "l2_shrinkage"})));
  const double power = values[0];
  const double initial = values[1];
  const Penalties penalties{.l1 = values[2], .l2 = values[3], .l2_shrinkage = values[4]};
  WEIR_RETURN_IF_ERROR(CheckNotPositive("learning_rate_power", power));
  WEIR_RETURN_IF_ERROR(CheckNotNegative("initial_accumulator_value", initial));
  WEIR_RETURN_IF_ERROR(CheckNotNegative("l1", penalties.l1));
  WEIR_RETURN_IF_ERROR(CheckNotNegative("l2", penalties.l2));
  WEIR_RETURN_IF_ERROR(CheckNotNegative("l2_shrinkage", penalties.l2_shrinkage));
  return MakeForDtype(context, [&]<typename T>() {
    if (power == -0.5) return MakeWith<T>(context, penalties, SquareRoot<T>(), initial);
    return MakeWith<T>(context, penalties, AnyPower<T>{static_cast<T>(-power)}, initial);
  });
}

}  // namespace optim
}  // namespace weir
