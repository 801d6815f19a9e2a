#include "optim/rate_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace weir::optim {
namespace {

using testing::HasSubstr;

RateSchedule ScheduleOf(const LearningRate& rate) {
  auto schedule = RateSchedule::Make(rate);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return *std::move(schedule);
}

double RateAt(const LearningRate& rate, std::int64_t step) {
  return ScheduleOf(rate).At(step);
}

TEST(RateScheduleTest, ANumberIsConstant) {
  EXPECT_EQ(RateAt(0.3, 0), 0.3);
  EXPECT_EQ(RateAt(0.3, 1'000'000), 0.3);
  EXPECT_TRUE(ScheduleOf(0.3).is_constant());
  EXPECT_FALSE(ScheduleOf(CosineDecay{}).is_constant());
  EXPECT_FALSE(ScheduleOf(WarmUp{.steps = 3, .then = 0.3}).is_constant());
}

// learning_rate_decay_test.py of TensorFlow, piecewise_constant: the boundary itself belongs to the
// interval before it.
TEST(RateScheduleTest, PiecewiseConstant) {
  const LearningRate rate =
      PiecewiseConstant{.boundaries = {100, 110, 120}, .rates = {1.0, 0.1, 0.01, 0.001}};
  EXPECT_EQ(RateAt(rate, -999), 1.0);
  EXPECT_EQ(RateAt(rate, 100), 1.0);
  EXPECT_EQ(RateAt(rate, 101), 0.1);
  EXPECT_EQ(RateAt(rate, 110), 0.1);
  EXPECT_EQ(RateAt(rate, 120), 0.01);
  EXPECT_EQ(RateAt(rate, 999), 0.001);
}

TEST(RateScheduleTest, ExponentialDecay) {
  const LearningRate smooth =
      ExponentialDecay{.initial = 0.1, .decay_steps = 3, .decay_rate = 0.96};
  const LearningRate stairs =
      ExponentialDecay{.initial = 0.1, .decay_steps = 3, .decay_rate = 0.96, .staircase = true};
  const LearningRate steps = StepDecay{.initial = 0.1, .every = 3, .rate = 0.96};
  for (const int step : {0, 1, 2, 3, 100}) {
    EXPECT_DOUBLE_EQ(RateAt(smooth, step), 0.1 * std::pow(0.96, step / 3.0));
    EXPECT_DOUBLE_EQ(RateAt(stairs, step), 0.1 * std::pow(0.96, step / 3));
    EXPECT_DOUBLE_EQ(RateAt(steps, step), RateAt(stairs, step));
  }
}

// The numbers of learning_rate_decay_test.py: halfway, beyond the end, by a square root, in cycles.
TEST(RateScheduleTest, PolynomialDecay) {
  PolynomialDecay decay{.initial = 0.05, .decay_steps = 10, .end = 0.001};
  EXPECT_DOUBLE_EQ(RateAt(decay, 0), 0.05);
  EXPECT_DOUBLE_EQ(RateAt(decay, 5), (0.05 + 0.001) / 2);
  EXPECT_DOUBLE_EQ(RateAt(decay, 10), 0.001);
  EXPECT_DOUBLE_EQ(RateAt(decay, 15), 0.001);
  decay.power = 0.5;
  EXPECT_DOUBLE_EQ(RateAt(decay, 5), 0.049 * std::sqrt(0.5) + 0.001);
  decay.power = 1;
  decay.cycle = true;
  EXPECT_DOUBLE_EQ(RateAt(decay, 0), 0.05);
  EXPECT_DOUBLE_EQ(RateAt(decay, 15), 0.049 * 0.25 + 0.001);
}

TEST(RateScheduleTest, CosineDecay) {
  const double pi = std::acos(-1.0);
  const LearningRate rate = CosineDecay{.initial = 2, .decay_steps = 1000, .alpha = 0.1};
  for (const int step : {0, 250, 500, 1000}) {
    EXPECT_NEAR(RateAt(rate, step), 2 * (0.9 * 0.5 * (1 + std::cos(pi * step / 1000)) + 0.1),
                1e-15);
  }
  EXPECT_NEAR(RateAt(rate, 5000), 0.2, 1e-15);
}

TEST(RateScheduleTest, WarmUpIsARampInFrontOfAnySchedule) {
  const LearningRate rate =
      WarmUp{.steps = 4, .start = 0.2, .then = StepDecay{.initial = 1, .every = 2, .rate = 0.5}};
  EXPECT_DOUBLE_EQ(RateAt(rate, 0), 0.2);
  EXPECT_DOUBLE_EQ(RateAt(rate, 1), 0.4);
  EXPECT_DOUBLE_EQ(RateAt(rate, 2), 0.6 * 0.5);
  EXPECT_DOUBLE_EQ(RateAt(rate, 4), 0.25);
  EXPECT_DOUBLE_EQ(RateAt(rate, 6), 0.125);
}

TEST(RateScheduleTest, TheRampsOfSeveralWarmUpsMultiply) {
  const LearningRate rate =
      WarmUp{.steps = 4, .start = 0.2, .then = WarmUp{.steps = 2, .start = 0.5, .then = 3.0}};
  EXPECT_DOUBLE_EQ(RateAt(rate, 0), 3 * 0.2 * 0.5);
  EXPECT_DOUBLE_EQ(RateAt(rate, 1), 3 * 0.4 * 0.75);
  EXPECT_DOUBLE_EQ(RateAt(rate, 2), 3 * 0.6);
  EXPECT_DOUBLE_EQ(RateAt(rate, 4), 3);
}

TEST(RateScheduleTest, RefusesWhatMakesNoSense) {
  LearningRate unknown;
  unknown.schedule = "sawtooth";
  LearningRate missing = CosineDecay{};
  missing.numbers.erase("alpha");
  LearningRate extra = 0.1;
  extra.numbers["power"] = 2;
  LearningRate no_start = WarmUp{};
  no_start.warm_up_starts.clear();
  const double inf = std::numeric_limits<double>::infinity();
  for (const auto& [rate, word] :
       {std::pair{unknown, "sawtooth"},
        {missing, "alpha"},
        {extra, "power"},
        {LearningRate(inf), "initial = inf"},
        {no_start, "1 and 0 starts"},
        {LearningRate(ExponentialDecay{.decay_steps = 0}), "decay_steps"},
        {LearningRate(ExponentialDecay{.decay_rate = -1}), "decay_rate"},
        {LearningRate(PolynomialDecay{.decay_steps = -1}), "decay_steps"},
        {LearningRate(PolynomialDecay{.power = -1}), "power"},
        {LearningRate(CosineDecay{.decay_steps = 0}), "decay_steps"},
        {LearningRate(WarmUp{.steps = -1}), "steps = -1 of a warm-up"},
        {LearningRate(WarmUp{.steps = 0}), "steps = 0 of a warm-up"},
        {LearningRate(WarmUp{.steps = 1, .then = WarmUp{.steps = 0}}), "steps = 0 of a warm-up"},
        {LearningRate(WarmUp{.steps = 2, .start = 1.5}), "start = 1.5 of a warm-up"},
        {LearningRate(PiecewiseConstant{.boundaries = {2, 2}, .rates = {1, 2, 3}}),
         "boundaries[1] = 2"},
        {LearningRate(PiecewiseConstant{.boundaries = {2}, .rates = {1, std::nan("")}}),
         "rates[1] = nan"},
        {LearningRate(PiecewiseConstant{.boundaries = {2}, .rates = {-inf, 1}}), "rates[0] = -inf"},
        {LearningRate(PiecewiseConstant{.boundaries = {2, 3}, .rates = {1, 2}}),
         "one rate more"}}) {
    const absl::Status status = RateSchedule::Make(rate).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << word;
    EXPECT_THAT(std::string(status.message()), HasSubstr(word));
  }
}

}  // namespace
}  // namespace weir::optim
