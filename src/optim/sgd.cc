#include "optim/elementwise_rule.h"

namespace weir {

Sgd::operator OptimizerSpec() const {
  return {.rule = "GradientDescent",
          .learning_rate = learning_rate,
          .hyperparameters = {},
          .use_locking = use_locking};
}

namespace optim {
namespace {

template <typename T>
struct SgdNumbers {
  using Step = SgdStep<T>;
  Step At(double rate, std::int64_t) const { return {.minus_lr = static_cast<T>(-rate)}; }
};

}  // namespace

RuleOr MakeSgd(const RuleContext& context) {
  WEIR_RETURN_IF_ERROR(TakeHyperparameters<0>(context, {}).status());
  return MakeForDtype(context,
                      [&]<typename T>() { return MakeElementwise(context, SgdNumbers<T>(), {}); });
}

}  // namespace optim
}  // namespace weir
