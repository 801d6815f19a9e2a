// The schedules of weir/learning_rate.h as the data that travels.
#include "weir/learning_rate.h"

namespace weir {
namespace {

LearningRate Schedule(const char* name, std::map<std::string, double> numbers) {
  LearningRate rate;
  rate.schedule = name;
  rate.numbers = std::move(numbers);
  return rate;
}

}  // namespace

PiecewiseConstant::operator LearningRate() const {
  LearningRate rate = Schedule("piecewise", {});
  rate.boundaries.assign(boundaries.begin(), boundaries.end());
  rate.rates = rates;
  return rate;
}

StepDecay::operator LearningRate() const {
  return ExponentialDecay{
      .initial = initial, .decay_steps = every, .decay_rate = rate, .staircase = true};
}

ExponentialDecay::operator LearningRate() const {
  return Schedule("exponential", {{"initial", initial},
                                  {"decay_steps", static_cast<double>(decay_steps)},
                                  {"decay_rate", decay_rate},
                                  {"staircase", staircase ? 1.0 : 0.0}});
}

PolynomialDecay::operator LearningRate() const {
  return Schedule("polynomial", {{"initial", initial},
                                 {"decay_steps", static_cast<double>(decay_steps)},
                                 {"end", end},
                                 {"power", power},
                                 {"cycle", cycle ? 1.0 : 0.0}});
}

CosineDecay::operator LearningRate() const {
  return Schedule(
      "cosine",
      {{"initial", initial}, {"decay_steps", static_cast<double>(decay_steps)}, {"alpha", alpha}});
}

WarmUp::operator LearningRate() const {
  LearningRate rate = then;
  rate.warm_up_steps.push_back(static_cast<double>(steps));
  rate.warm_up_starts.push_back(start);
  return rate;
}

}  // namespace weir
