#include "weir/optimizer.h"

namespace weir {

Sgd::operator OptimizerSpec() const {
  return {.rule = "GradientDescent",
          .hyperparameters = {{"learning_rate", learning_rate}},
          .use_locking = use_locking};
}

Momentum::operator OptimizerSpec() const {
  return {.rule = "Momentum",
          .hyperparameters = {{"learning_rate", learning_rate},
                              {"momentum", momentum},
                              {"use_nesterov", use_nesterov ? 1.0 : 0.0}},
          .use_locking = use_locking};
}

Adam::operator OptimizerSpec() const {
  return {.rule = "Adam",
          .hyperparameters = {{"learning_rate", learning_rate},
                              {"beta1", beta1},
                              {"beta2", beta2},
                              {"epsilon", epsilon}},
          .use_locking = use_locking};
}

}  // namespace weir
