// Optimizers a user may choose. Each is plain data with the original's names and defaults; the rule
// itself runs on the task that owns the variable (src/optim).
#pragma once

#include <map>
#include <string>

namespace weir {

/// What travels to the variable's task: which rule, with which numbers.
struct OptimizerSpec {
  std::string rule;  // "GradientDescent", "Momentum", "Adam"
  std::map<std::string, double> hyperparameters;
  bool use_locking = false;
};

/// w -= lr * g, by fused multiply-add. TensorFlow's GradientDescentOptimizer.
struct Sgd {
  double learning_rate = 0.01;
  /// Two updates of one variable exclude each other.
  bool use_locking = false;
  operator OptimizerSpec() const;  // NOLINT
};

/// a = momentum * a + g; w -= lr * a; with Nesterov w -= lr * g + lr * momentum * a. Slot
/// "momentum". Every operation is rounded, none is fused.
struct Momentum {
  double learning_rate = 0.01;
  double momentum = 0.9;
  bool use_nesterov = false;
  bool use_locking = false;
  operator OptimizerSpec() const;  // NOLINT
};

/// alpha = lr * sqrt(1 - beta2^t) / (1 - beta1^t); m += (1 - beta1)(g - m); v += (1 - beta2)(g^2 -
/// v); w -= alpha * m / (sqrt(v) + epsilon). Kingma and Ba 2014 with the epsilon-hat form, as
/// TensorFlow; PyTorch's epsilon is this one divided by sqrt(1 - beta2^t). Slots "m", "v" and the
/// powers "beta1_power", "beta2_power", which live beside each variable, as float64 scalars: t
/// counts the variable's updates, whichever worker they come from. alpha and 1 - beta are computed
/// in float64 and rounded to the variable's dtype; after that every operation is rounded, none is
/// fused. Betas are in [0, 1).
struct Adam {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool use_locking = false;
  operator OptimizerSpec() const;  // NOLINT
};

}  // namespace weir
