#include "optim/elementwise_rule.h"

namespace weir {

Adagrad::operator OptimizerSpec() const {
  return {.rule = "Adagrad",
          .learning_rate = learning_rate,
          .hyperparameters = {{"initial_accumulator_value", initial_accumulator_value}},
          .use_locking = use_locking};
}

namespace optim {
namespace {

template <typename T>
struct AdagradNumbers {
  using Step = AdagradStep<T>;
  Step At(double rate, std::int64_t) const { return {.lr = static_cast<T>(rate)}; }
};

}  // namespace

RuleOr MakeAdagrad(const RuleContext& context) {
  WEIR_ASSIGN_OR_RETURN(const auto values,
                        TakeHyperparameters<1>(context, {"initial_accumulator_value"}));
  WEIR_RETURN_IF_ERROR(CheckPositive(context, "initial_accumulator_value", values[0]));
  WEIR_ASSIGN_OR_RETURN(at::Tensor slot, FilledSlot(context, "accumulator", values[0]));
  return MakeForDtype(context, [&]<typename T>() {
    return MakeElementwise(context, AdagradNumbers<T>(), {std::move(slot)});
  });
}

}  // namespace optim
}  // namespace weir
