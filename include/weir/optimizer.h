// Optimizers a user may choose. Each is plain data with the original's names and defaults; the rule
// itself runs on the task that owns the variable (src/optim).
//
// Formulas are for one element: w the variable's, g the gradient's, lr the learning rate of the
// step. Slots are tensors of the variable's shape and dtype beside it, named "<rule>/<slot>". Every
// operation is rounded to the variable's dtype and none is fused, unless a rule says so. Variables
// are float32 or float64.
//
// A sparse gradient has values for some rows of the variable. Several values for one row are summed
// first; then exactly those rows of the variable and of its slots are updated, as by a dense
// gradient. A rule that moves the other rows too says so.
//
// Where a number cannot be (a negative L1, a decay of 1), the session refuses the graph with
// InvalidArgument, naming the variable, the number and its value.
#pragma once

#include <map>
#include <string>

#include "weir/learning_rate.h"

namespace weir {

/// What travels to the variable's task: which rule, with which numbers.
struct OptimizerSpec {
  std::string rule;  // "GradientDescent", "Momentum", "Adam", ...
  LearningRate learning_rate;
  std::map<std::string, double> hyperparameters;
  bool use_locking = false;
  /// The rule depends on the number of the step, as a schedule does.
  bool counts_steps = false;
};

/// w -= lr * g, by fused multiply-add. TensorFlow's GradientDescentOptimizer.
struct Sgd {
  LearningRate learning_rate = 0.01;
  /// Two updates of one variable exclude each other.
  bool use_locking = false;
  operator OptimizerSpec() const;  // NOLINT
};

/// a = momentum * a + g; w -= lr * a; with Nesterov w -= lr * g + lr * momentum * a. Slot
/// "momentum". TensorFlow's MomentumOptimizer.
struct Momentum {
  LearningRate learning_rate = 0.01;
  double momentum = 0.9;
  bool use_nesterov = false;
  bool use_locking = false;
  operator OptimizerSpec() const;  // NOLINT
};

/// a += g^2; w -= lr * g / sqrt(a). Slot "accumulator", first initial_accumulator_value, which is
/// more than 0: there is no epsilon. Duchi, Hazan and Singer 2011; TensorFlow's AdagradOptimizer,
/// PyTorch's Adagrad with eps 0.
struct Adagrad {
  LearningRate learning_rate = 0.01;
  double initial_accumulator_value = 0.1;  // > 0
  bool use_locking = false;
  operator OptimizerSpec() const;  // NOLINT
};

/// Adagrad by dual averaging: G += g; S += g^2; w = -sgn(G) * lr * max(|G| - l1 * T, 0) /
/// (l2 * T * lr + sqrt(S)), with T the number of the training step, from 1. The weight before the
/// first update has no influence. Slots "gradient_accumulator", first 0, and
/// "gradient_squared_accumulator", first initial_gradient_squared_accumulator_value. The rate of
/// every step must be more than 0. Duchi, Hazan and Singer 2011; TensorFlow's AdagradDAOptimizer,
/// which reads T on the worker.
struct AdagradDa {
  LearningRate learning_rate = 0.01;
  double initial_gradient_squared_accumulator_value = 0.1;  // > 0
  double l1 = 0;                                            // >= 0
  double l2 = 0;                                            // >= 0
  bool use_locking = false;
  operator OptimizerSpec() const;  // NOLINT
};

/// A = rho * A + (1 - rho) * g^2; u = sqrt(U + epsilon) / sqrt(A + epsilon) * g; w -= lr * u;
/// U = rho * U + (1 - rho) * u^2. Slots "accum" (A) and "accum_update" (U). Zeiler 2012;
/// TensorFlow's AdadeltaOptimizer. As there, with epsilon 0 a gradient of 0 before any other makes
/// 0 / 0, NaN.
struct Adadelta {
  LearningRate learning_rate = 0.001;
  double rho = 0.95;      // in [0, 1)
  double epsilon = 1e-8;  // >= 0
  bool use_locking = false;
  operator OptimizerSpec() const;  // NOLINT
};

/// alpha = lr * sqrt(1 - beta2^t) / (1 - beta1^t); m += (1 - beta1)(g - m); v += (1 - beta2)(g^2 -
/// v); w -= alpha * m / (sqrt(v) + epsilon). Kingma and Ba 2014 with the epsilon-hat form, as
/// TensorFlow; PyTorch's epsilon is this one divided by sqrt(1 - beta2^t). Slots "m", "v" and the
/// powers "beta1_power", "beta2_power", which live beside each variable, as float64 scalars: t
/// counts the variable's updates, whichever worker they come from. alpha and 1 - beta are computed
/// in float64 and rounded to the variable's dtype. Betas are in [0, 1). As in TensorFlow, with
/// epsilon 0 a gradient of 0 before any other makes 0 / 0, NaN; so do LazyAdam, AdamW and LAMB.
///
/// A sparse gradient counts as zero in the other rows, as in the original: m and v decay in the
/// whole table and every row moves. LazyAdam is the rule for large tables.
struct Adam {
  LearningRate learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool use_locking = false;
  operator OptimizerSpec() const;  // NOLINT
};

/// Adam, but a sparse gradient leaves the other rows of w, m and v alone; t still counts every
/// update of the variable. Slots as Adam. TensorFlow's contrib LazyAdamOptimizer.
struct LazyAdam {
  LearningRate learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool use_locking = false;
  operator OptimizerSpec() const;  // NOLINT
};

/// w *= 1 - lr * weight_decay; then m and v as Adam, and w -= lr * (m / (1 - beta1^t)) /
/// (sqrt(v / (1 - beta2^t)) + epsilon): Loshchilov and Hutter 2017 with PyTorch's form of the decay
/// and of epsilon. (The decay of TensorFlow's contrib AdamW is not multiplied by lr.) Slots as
/// Adam; a sparse gradient leaves the other rows alone.
struct AdamW {
  LearningRate learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;  // >= 0
  bool use_locking = false;
  operator OptimizerSpec() const;  // NOLINT
};

/// m and v as Adam; r = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay *
/// w; w -= lr * |w| / |r| * r, where the ratio of the Euclidean norms over the whole variable
/// counts as 1 when one of them is 0. You et al. 2019; defaults of TensorFlow Addons. Slots as
/// Adam. A variable in parts has a ratio for each part. Each update allocates one tensor of the
/// variable's size. A sparse gradient counts as zero in the other rows.
struct Lamb {
  LearningRate learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0;  // >= 0
  bool use_locking = false;
  operator OptimizerSpec() const;  // NOLINT
};

/// With p = -learning_rate_power: g' = g + 2 * l2_shrinkage * w; n' = n + g^2; z += g' - (n'^p -
/// n^p) / lr * w; w = (sgn(z) * l1 - z) / (n'^p / lr + 2 * l2) where |z| > l1, else 0; n = n'.
/// Slots "accum" (n), first initial_accumulator_value, and "linear" (z). The rate of every step
/// must be more than 0. McMahan et al. 2013; TensorFlow's FtrlOptimizer.
struct Ftrl {
  LearningRate learning_rate = 0.01;
  double learning_rate_power = -0.5;       // <= 0; other values than -0.5 are slower
  double initial_accumulator_value = 0.1;  // >= 0
  double l1 = 0;                           // >= 0
  double l2 = 0;                           // >= 0
  double l2_shrinkage = 0;                 // >= 0
  bool use_locking = false;
  operator OptimizerSpec() const;  // NOLINT
};

/// s += (1 - decay)(g^2 - s); p = momentum * p + lr * g / sqrt(s + epsilon); w -= p. With
/// `centered` also c += (1 - decay)(g - c), and s - c^2 + epsilon under the root. Slots "rms" (s),
/// first 1, "momentum" (p) and, when centered, "mg" (c). Tieleman and Hinton 2012; TensorFlow's
/// RMSPropOptimizer. (PyTorch's has s first 0 and epsilon outside the root.)
struct RmsProp {
  LearningRate learning_rate = 0.001;
  double decay = 0.9;      // in [0, 1)
  double momentum = 0;     // >= 0
  double epsilon = 1e-10;  // >= 0
  bool centered = false;
  bool use_locking = false;
  operator OptimizerSpec() const;  // NOLINT
};

/// v = w - lr * g; w = sgn(v) * max(|v| - lr * l1, 0) / (1 + lr * l2). Duchi and Singer 2009
/// (FOBOS); TensorFlow's ProximalGradientDescentOptimizer.
struct ProximalGradientDescent {
  LearningRate learning_rate = 0.01;
  double l1 = 0;  // >= 0
  double l2 = 0;  // >= 0
  bool use_locking = false;
  operator OptimizerSpec() const;  // NOLINT
};

/// a += g^2; e = lr / sqrt(a); v = w - e * g; w = sgn(v) * max(|v| - e * l1, 0) / (1 + e * l2).
/// Slot "accumulator", first initial_accumulator_value. Duchi and Singer 2009; TensorFlow's
/// ProximalAdagradOptimizer.
struct ProximalAdagrad {
  LearningRate learning_rate = 0.01;
  double initial_accumulator_value = 0.1;  // > 0
  double l1 = 0;                           // >= 0
  double l2 = 0;                           // >= 0
  bool use_locking = false;
  operator OptimizerSpec() const;  // NOLINT
};

/// average -= (1 - decay) * (average - value), with 1 - decay rounded to the variable's dtype.
/// Not an optimizer but a rule like them: see weir/moving_average.h. TensorFlow's
/// ExponentialMovingAverage.
struct MovingAverage {
  double decay = 0.999;  // in [0, 1)
  /// Step n, counted from 0, decays by min(decay, (1 + n) / (10 + n)): averages of the first steps
  /// follow the values more closely. The original's num_updates.
  bool warm_up = false;
  /// Two updates of one average exclude each other.
  bool use_locking = false;
  operator OptimizerSpec() const;  // NOLINT
};

}  // namespace weir
