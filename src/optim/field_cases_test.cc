// Reports from the field about optimizers, with the right value of each: docs/cases.md lists them.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "optim/rule_testing.h"

namespace weir::optim {
namespace {

constexpr double kTolerance = 1e-12;

at::Tensor Column(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble).reshape({-1, 1});
}

double At(const at::Tensor& tensor, std::int64_t row) {
  return tensor.reshape({-1})[row].item<double>();
}

double ValueAt(const store::Variable& variable, std::int64_t row) {
  return At(store::ValueOf(variable), row);
}

class DuplicateIdsCase : public testing::Test {  // C5-01
 protected:
  double accumulator() const { return At(table_->slots().at("scope/accumulator"), 7); }

  const std::shared_ptr<store::Variable> table_ = VariableOf(at::zeros({8, 1}, at::kDouble));
  const std::unique_ptr<UpdateRule> rule_ =
      RuleOf(Adagrad{.learning_rate = 0.1, .initial_accumulator_value = 0.1}, table_);
};

TEST_F(DuplicateIdsCase, OnePushSumsThemBeforeTheRule) {
  ApplyRows(*rule_, {7, 7}, Column({1, 3}));
  EXPECT_NEAR(accumulator(), 16.1, kTolerance);
  EXPECT_NEAR(ValueAt(*table_, 7), -0.09968895725584535, kTolerance);
}

TEST_F(DuplicateIdsCase, TwoPushesAreTwoSteps) {
  ApplyRows(*rule_, {7}, Column({1}));
  ApplyRows(*rule_, {7}, Column({3}));
  EXPECT_NEAR(accumulator(), 10.1, kTolerance);
  EXPECT_NEAR(ValueAt(*table_, 7), -0.18974377525369213, kTolerance);
}

/// Rows 0 and 1 of ones; a step with a gradient of 1 on row 0, then one on row 1.
std::vector<double> RowsAfter(const OptimizerSpec& spec, int steps) {
  const auto table = VariableOf(at::ones({2, 1}, at::kDouble));
  const auto rule = RuleOf(spec, table);
  for (int step = 0; step < steps; ++step) ApplyRows(*rule, {step}, Column({1}));
  return {ValueAt(*table, 0), ValueAt(*table, 1)};
}

// The report's numbers have epsilon beside the corrected root, as PyTorch; Weir has it beside the
// plain one, as TensorFlow, which moves a step of 0.001 by less than this.
constexpr double kEpsilonsPlace = 1e-9;

TEST(IdleRowsCase, AdamMovesThemAndLazyAdamDoesNot) {  // C5-02
  for (const OptimizerSpec& spec : {OptimizerSpec(Adam{}), OptimizerSpec(LazyAdam{})})
    EXPECT_NEAR(RowsAfter(spec, 1)[0], 0.99900000001, kEpsilonsPlace);
  EXPECT_NEAR(RowsAfter(Adam{}, 2)[0], 0.9983299417653418, kEpsilonsPlace);
  EXPECT_NEAR(RowsAfter(LazyAdam{}, 2)[0], 0.99900000001, kEpsilonsPlace);
  // Both count the updates of the table, not those of a row.
  EXPECT_NEAR(RowsAfter(Adam{}, 2)[1], 0.999255863186954, kEpsilonsPlace);
  EXPECT_NEAR(RowsAfter(LazyAdam{}, 2)[1], 0.999255863186954, kEpsilonsPlace);
}

struct FtrlNumbers {
  double accumulator, linear, weight;
};

/// After gradients of 0.5 and, if there is a second step, 0.8.
FtrlNumbers FtrlAfter(int steps, double l2) {
  const auto variable = VariableOf(Column({0}));
  const auto rule = RuleOf(
      Ftrl{.learning_rate = 0.1, .initial_accumulator_value = 0.1, .l1 = 1, .l2 = l2}, variable);
  for (int step = 0; step < steps; ++step) Apply(*rule, Column({step == 0 ? 0.5 : 0.8}));
  const auto slots = variable->slots();
  return {At(slots.at("scope/accum"), 0), At(slots.at("scope/linear"), 0), ValueAt(*variable, 0)};
}

TEST(FtrlCase, BelowTheLimitOfL1AWeightIsZeroAndNotMinusZero) {  // C5-04
  const FtrlNumbers numbers = FtrlAfter(1, /*l2=*/0);
  EXPECT_NEAR(numbers.accumulator, 0.35, kTolerance);
  EXPECT_NEAR(numbers.linear, 0.5, kTolerance);
  EXPECT_EQ(numbers.weight, 0);
  EXPECT_FALSE(std::signbit(numbers.weight));
}

TEST(FtrlCase, AboveItL2IsDoubled) {  // C5-04
  const FtrlNumbers numbers = FtrlAfter(2, /*l2=*/0);
  EXPECT_NEAR(numbers.accumulator, 0.99, kTolerance);
  EXPECT_NEAR(numbers.linear, 1.3, kTolerance);
  EXPECT_NEAR(numbers.weight, -0.03015113445777637, kTolerance);
  EXPECT_NEAR(FtrlAfter(2, /*l2=*/0.5).weight, -0.027397574605304696, kTolerance);
}

TEST(FtrlCase, ARateOfZeroIsRefused) {  // C5-04
  const auto rule = MakeUpdateRule(Ftrl{.learning_rate = 0}, "scope", VariableOf(Column({0})));
  EXPECT_EQ(rule.status().code(), absl::StatusCode::kInvalidArgument) << rule.status();
}

// Every rule with an L1 term, from both sides.
TEST(FtrlCase, NoRuleMakesAMinusZero) {  // C5-04
  for (const OptimizerSpec& spec :
       {OptimizerSpec(Ftrl{.l1 = 100}), OptimizerSpec(AdagradDa{.l1 = 100}),
        OptimizerSpec(ProximalGradientDescent{.l1 = 1000}),
        OptimizerSpec(ProximalAdagrad{.l1 = 1000})}) {
    const auto variable = VariableOf(Column({0, 0}));
    Apply(*RuleOf(spec, variable), Column({0.5, -0.5}));
    for (const std::int64_t row : {0, 1}) {
      EXPECT_EQ(ValueAt(*variable, row), 0) << spec.rule;
      EXPECT_FALSE(std::signbit(ValueAt(*variable, row))) << spec.rule << " of row " << row;
    }
  }
}

// Without an epsilon a start of zero would be 0/0: it is refused, and no default makes one.
TEST(AdagradStartCase, ZeroIsRefusedAndATenthIsTheDefault) {  // C5-05
  const auto variable = VariableOf(Column({0}));
  const auto refused = MakeUpdateRule(Adagrad{.learning_rate = 0.1, .initial_accumulator_value = 0},
                                      "scope", variable);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              testing::HasSubstr("initial_accumulator_value"));
  const auto rule = RuleOf(Adagrad{.learning_rate = 0.1}, variable);
  Apply(*rule, Column({0}));
  EXPECT_EQ(ValueAt(*variable, 0), 0);
  Apply(*rule, Column({1}));
  EXPECT_NEAR(ValueAt(*variable, 0), -0.09534625892455922, 1e-9);
}

}  // namespace
}  // namespace weir::optim
