#include <cmath>

#include "optim/adam_state.h"
#include "optim/elementwise_rule.h"

namespace weir {

AdamW::operator OptimizerSpec() const {
  return {.rule = "AdamW",
          .learning_rate = learning_rate,
          .hyperparameters = {{"beta1", beta1},
                              {"beta2", beta2},
                              {"epsilon", epsilon},
                              {"weight_decay", weight_decay}},
          .use_locking = use_locking};
}

namespace optim {
namespace {

// Adam's step, with the epsilon that makes it PyTorch's: that one stands beside the corrected root.
template <typename T>
struct AdamWNumbers {
  using Step = AdamWStep<T>;
  BetaPowers powers;
  double epsilon;
  double weight_decay;
  Step At(double rate, std::int64_t) const {
    const double correction = std::sqrt(powers.one_minus_power2());
    const double alpha = rate * correction / powers.one_minus_power1();
    return {.adam = {.moments = powers.moments<T>(),
                     .alpha = static_cast<T>(alpha),
                     .epsilon = static_cast<T>(epsilon * correction)},
            .keep = static_cast<T>(1 - rate * weight_decay)};
  }
  void Applied() const { powers.Advance(); }
};

}  // namespace

RuleOr MakeAdamW(const RuleContext& context) {
  WEIR_ASSIGN_OR_RETURN(
      const auto values,
      (TakeHyperparameters<4>(context, {"beta1", "beta2", "epsilon", "weight_decay"})));
  const auto [beta1, beta2, epsilon, weight_decay] = values;
  WEIR_RETURN_IF_ERROR(CheckNotNegative("epsilon", epsilon));
  WEIR_RETURN_IF_ERROR(CheckNotNegative("weight_decay", weight_decay));
  WEIR_ASSIGN_OR_RETURN(const BetaPowers powers, BetaPowers::Make(context, beta1, beta2));
  WEIR_ASSIGN_OR_RETURN(auto slots, MakeMoments(context));
  return MakeForDtype(context, [&]<typename T>() {
    return MakeElementwise(context, AdamWNumbers<T>{powers, epsilon, weight_decay},
                           std::move(slots));
  });
}

}  // namespace optim
}  // namespace weir
