#include <cmath>

#include "optim/adam_state.h"
#include "optim/elementwise_rule.h"

namespace weir {
namespace {

template <typename Optimizer>
OptimizerSpec SpecOf(const char* rule, const Optimizer& optimizer) {
  return {.rule = rule,
          .learning_rate = optimizer.learning_rate,
          .hyperparameters = {{"beta1", optimizer.beta1},
                              {"beta2", optimizer.beta2},
                              {"epsilon", optimizer.epsilon}},
          .use_locking = optimizer.use_locking};
}

}  // namespace

Adam::operator OptimizerSpec() const {
  return SpecOf("Adam", *this);
}

LazyAdam::operator OptimizerSpec() const {
  return SpecOf("LazyAdam", *this);
}

namespace optim {
namespace {

template <typename T>
struct LazyAdamNumbers {
  using Step = AdamStep<T>;
  BetaPowers powers;
  double epsilon = 0;
  Step At(double rate, std::int64_t) const {
    const double alpha = rate * std::sqrt(powers.one_minus_power2()) / powers.one_minus_power1();
    return {.moments = powers.moments<T>(),
            .alpha = static_cast<T>(alpha),
            .epsilon = static_cast<T>(epsilon)};
  }
  void Applied() const { powers.Advance(); }
};

template <typename T>
struct AdamNumbers : LazyAdamNumbers<T> {
  static constexpr bool kMovesEveryRow = true;
};

template <template <typename> typename Numbers>
RuleOr MakeWith(const RuleContext& context) {
  WEIR_ASSIGN_OR_RETURN(const auto values,
                        (TakeHyperparameters<3>(context, {"beta1", "beta2", "epsilon"})));
  const auto [beta1, beta2, epsilon] = values;
  WEIR_RETURN_IF_ERROR(CheckNotNegative("epsilon", epsilon));
  WEIR_ASSIGN_OR_RETURN(const BetaPowers powers, BetaPowers::Make(context, beta1, beta2));
  WEIR_ASSIGN_OR_RETURN(auto slots, MakeMoments(context));
  return MakeForDtype(context, [&]<typename T>() {
    Numbers<T> numbers;
    numbers.powers = powers;
    numbers.epsilon = epsilon;
    return MakeElementwise(context, std::move(numbers), std::move(slots));
  });
}

}  // namespace

RuleOr MakeAdam(const RuleContext& context) {
  return MakeWith<AdamNumbers>(context);
}

RuleOr MakeLazyAdam(const RuleContext& context) {
  return MakeWith<LazyAdamNumbers>(context);
}

}  // namespace optim
}  // namespace weir
