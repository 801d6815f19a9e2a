// Learning rates: a number, or a function of the global step.
//
// A schedule travels to the task that owns a variable as plain data and is evaluated there, for
// each update, at `step`: the number of training steps that come before this one in the order of
// tickets, 0 for the first. So every variable of a step is updated with the same rate, whoever else
// trains meanwhile, and nobody has to read global_step for it. (The original evaluates a schedule
// on the worker at whatever global_step happens to be when it is read.)
//
//   weir::Adam{.learning_rate = weir::WarmUp{.steps = 100, .then = weir::CosineDecay{
//                  .initial = 1e-3, .decay_steps = 10'000}}}
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace weir {

/// A rate as it travels. Made from a number, or from one of the schedules below; what makes no
/// sense (a decay over no steps) is InvalidArgument when the graph is compiled for its tasks.
struct LearningRate {
  LearningRate(double rate = 0.01)  // NOLINT: a number is a rate
      : numbers{{"initial", rate}} {}

  std::string schedule = "constant";
  std::map<std::string, double> numbers;
  std::vector<double> boundaries = {};  // of "piecewise": steps
  std::vector<double> rates = {};       // of "piecewise"
  /// The rate is multiplied by ramps, one from warm_up_starts[i] to 1 over the first
  /// warm_up_steps[i] steps each.
  std::vector<double> warm_up_steps = {};
  std::vector<double> warm_up_starts = {};

  bool is_constant() const { return schedule == "constant" && warm_up_steps.empty(); }
};

/// rates[0] up to and including step boundaries[0], then rates[1] up to and including
/// boundaries[1], ...; the last rate ever after. TensorFlow's piecewise_constant. Boundaries rise;
/// there is one rate more than boundaries.
struct PiecewiseConstant {
  std::vector<std::int64_t> boundaries = {};
  std::vector<double> rates = {};
  operator LearningRate() const;  // NOLINT
};

/// initial * rate^floor(step / every): the step decay of PyTorch's StepLR.
struct StepDecay {
  double initial = 0.01;
  std::int64_t every = 1;  // steps, > 0
  double rate = 0.1;
  operator LearningRate() const;  // NOLINT
};

/// initial * decay_rate^(step / decay_steps), the exponent rounded down with `staircase`.
/// TensorFlow's exponential_decay.
struct ExponentialDecay {
  double initial = 0.01;
  std::int64_t decay_steps = 1;  // > 0
  double decay_rate = 0.96;
  bool staircase = false;
  operator LearningRate() const;  // NOLINT
};

/// (initial - end) * (1 - s / decay_steps)^power + end, with s = min(step, decay_steps). With
/// `cycle` decay_steps is raised to its next multiple beyond the step instead.
/// TensorFlow's polynomial_decay.
struct PolynomialDecay {
  double initial = 0.01;
  std::int64_t decay_steps = 1;  // > 0
  double end = 0.0001;
  double power = 1;
  bool cycle = false;
  operator LearningRate() const;  // NOLINT
};

/// initial * ((1 - alpha) * (1 + cos(pi * s / decay_steps)) / 2 + alpha), with s = min(step,
/// decay_steps). TensorFlow's cosine_decay, after Loshchilov and Hutter 2016 (SGDR).
struct CosineDecay {
  double initial = 0.01;
  std::int64_t decay_steps = 1;  // > 0
  double alpha = 0;
  operator LearningRate() const;  // NOLINT
};

/// `then`, multiplied by start + (1 - start) * min(step, steps) / steps: PyTorch's LinearLR in
/// front of any schedule, also of another WarmUp: their ramps multiply. With `start` 0 the first
/// step has the rate 0.
struct WarmUp {
  std::int64_t steps = 1;  // > 0
  double start = 0;        // in [0, 1]
  LearningRate then = {};
  operator LearningRate() const;  // NOLINT
};

}  // namespace weir
