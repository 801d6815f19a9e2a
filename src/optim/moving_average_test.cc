#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "optim/rule_testing.h"

namespace weir::optim {
namespace {

TEST(MovingAverageTest, DecaysAsTheOriginalsFormula) {
  const at::Tensor start = at::tensor({2.0, -1.0, 0.5}, at::kDouble);
  const at::Tensor value = at::tensor({10.0, 20.0, -30.0}, at::kDouble);
  const auto average = VariableOf(start);
  const auto rule = RuleOf(MovingAverage{.decay = 0.25}, average);
  EXPECT_FALSE(rule->counts_steps());
  // As the original tests it: mu * start + (1 - mu) * value, again and again.
  at::Tensor expected = start;
  for (int i = 0; i < 4; ++i) {
    Apply(*rule, value);
    expected = expected * 0.25 + value * 0.75;
  }
  EXPECT_LT(MaxDifference(average->Read()->tensor, expected), 1e-13);
}

TEST(MovingAverageTest, FirstStepsDecayLessWhenWarmingUp) {
  const auto average = VariableOf(at::zeros({1}, at::kDouble));
  const auto rule = RuleOf(MovingAverage{.decay = 0.3, .warm_up = true}, average);
  EXPECT_TRUE(rule->counts_steps());
  double expected = 0;
  for (int n = 0; n < 6; ++n) {
    Apply(*rule, at::full({1}, n + 1.0, at::kDouble), n);
    const double decay = std::min(0.3, (1.0 + n) / (10.0 + n));
    expected = decay * expected + (1 - decay) * (n + 1.0);
    EXPECT_NEAR(average->Read()->tensor.item<double>(), expected, 1e-13) << n;
  }
}

TEST(MovingAverageTest, OneMinusDecayIsRoundedOnce) {
  const auto average = VariableOf(at::full({3}, 2, at::kFloat));
  Apply(*RuleOf(MovingAverage{.decay = 0.9999}, average), at::full({3}, 3, at::kFloat));
  EXPECT_EQ(average->Read()->tensor[0].item<float>(),
            2.0F - static_cast<float>(1 - 0.9999) * -1.0F);
}

TEST(MovingAverageTest, ADecayOfOneNeverMovesAndIsRefused) {
  for (const double decay : {1.0, -0.1, std::nan("")}) {
    const auto rule =
        MakeUpdateRule(MovingAverage{.decay = decay}, "scope", VariableOf(at::zeros({1})));
    EXPECT_EQ(rule.status().code(), absl::StatusCode::kInvalidArgument) << decay;
    EXPECT_THAT(std::string(rule.status().message()), ::testing::HasSubstr("decay"));
  }
}

}  // namespace
}  // namespace weir::optim
