#include "optim/elementwise_rule.h"

namespace weir {

Adadelta::operator OptimizerSpec() const {
  return {.rule = "Adadelta",
          .learning_rate = learning_rate,
          .hyperparameters = {{"rho", rho}, {"epsilon", epsilon}},
          .use_locking = use_locking};
}

namespace optim {
namespace {

template <typename T>
struct AdadeltaNumbers {
  using Step = AdadeltaStep<T>;
  double rho;
  double epsilon;
  Step At(double rate, std::int64_t) const {
    return {.lr = static_cast<T>(rate),
            .rho = static_cast<T>(rho),
            .one_minus_rho = static_cast<T>(1 - rho),
            .epsilon = static_cast<T>(epsilon)};
  }
};

}  // namespace

RuleOr MakeAdadelta(const RuleContext& context) {
  WEIR_ASSIGN_OR_RETURN(const auto values, (TakeHyperparameters<2>(context, {"rho", "epsilon"})));
  const auto [rho, epsilon] = values;
  WEIR_RETURN_IF_ERROR(CheckBelowOne("rho", rho));
  WEIR_RETURN_IF_ERROR(CheckNotNegative("epsilon", epsilon));
  WEIR_ASSIGN_OR_RETURN(at::Tensor squares, FilledSlot(context, "accum", 0));
  WEIR_ASSIGN_OR_RETURN(at::Tensor updates, FilledSlot(context, "accum_update", 0));
  return MakeForDtype(context, [&]<typename T>() {
    return MakeElementwise(context, AdadeltaNumbers<T>{.rho = rho, .epsilon = epsilon},
                           {std::move(squares), std::move(updates)});
  });
}

}  // namespace optim
}  // namespace weir
