#include <algorithm>

#include "optim/elementwise_rule.h"

namespace weir {

MovingAverage::operator OptimizerSpec() const {
  return {.rule = "MovingAverage",
          .learning_rate = {},
          .hyperparameters = {{"decay", decay}, {"warm_up", warm_up ? 1.0 : 0.0}},
          .use_locking = use_locking,
          .counts_steps = warm_up};
}

namespace optim {
namespace {

template <typename T>
struct MovingAverageNumbers {
  using Step = MovingAverageStep<T>;
  double decay;
  Step At(double, std::int64_t) const { return {.rate = static_cast<T>(1 - decay)}; }
};

template <typename T>
struct WarmingUpNumbers {
  using Step = MovingAverageStep<T>;
  static constexpr bool kCountsSteps = true;
  double decay;
  Step At(double, std::int64_t step) const {
    const auto n = static_cast<double>(step);
    return {.rate = static_cast<T>(1 - std::min(decay, (1 + n) / (10 + n)))};
  }
};

}  // namespace

RuleOr MakeMovingAverage(const RuleContext& context) {
  WEIR_ASSIGN_OR_RETURN(const auto values, (TakeHyperparameters<2>(context, {"decay", "warm_up"})));
  const double decay = values[0];
  const bool warm_up = values[1] != 0;
  WEIR_RETURN_IF_ERROR(CheckBelowOne("decay", decay));
  return MakeForDtype(context, [&]<typename T>() {
    return warm_up ? MakeElementwise(context, WarmingUpNumbers<T>{.decay = decay}, {})
                   : MakeElementwise(context, MovingAverageNumbers<T>{.decay = decay}, {});
  });
}

}  // namespace optim
}  // namespace weir
