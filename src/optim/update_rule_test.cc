#include "optim/update_rule.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "optim/dense_pass.h"
#include "optim/rule_testing.h"

namespace weir::optim {
namespace {

using testing::HasSubstr;

const OptimizerSpec kSpecs[] = {Sgd{},
                                Momentum{},
                                Momentum{.use_nesterov = true},
                                Adagrad{},
                                AdagradDa{},
                                Adadelta{},
                                Adam{},
                                LazyAdam{},
                                AdamW{},
                                Lamb{},
                                Ftrl{},
                                Ftrl{.learning_rate_power = -0.25},
                                RmsProp{},
                                RmsProp{.centered = true},
                                ProximalGradientDescent{},
                                ProximalAdagrad{}};

absl::Status ErrorOf(const OptimizerSpec& spec, at::ScalarType dtype = at::kFloat) {
  return MakeUpdateRule(spec, "scope", VariableOf(at::zeros({2}, dtype))).status();
}

TEST(UpdateRuleTest, RefusesWhatItCannotDo) {
  OptimizerSpec unknown = Sgd{};
  unknown.rule = "Lion";
  OptimizerSpec missing = Adam{};
  missing.hyperparameters.erase("beta1");
  OptimizerSpec extra = Sgd{};
  extra.hyperparameters["weight_decay"] = 0.1;
  const OptimizerSpec infinite = Sgd{.learning_rate = std::numeric_limits<double>::infinity()};
  const OptimizerSpec no_number = Momentum{.momentum = std::nan("")};
  const OptimizerSpec too_large = Sgd{.learning_rate = 1e300};
  for (const auto& [spec, word] : {std::pair{unknown, "Lion"},
                                   {missing, "beta1"},
                                   {extra, "weight_decay"},
                                   {infinite, "learning_rate"},
                                   {no_number, "momentum"},
                                   {too_large, "1e+300"}}) {
    const absl::Status status = ErrorOf(spec);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), testing::AllOf(HasSubstr(word), HasSubstr("\"w\"")));
  }
  EXPECT_TRUE(ErrorOf(too_large, at::kDouble).ok());
}

// Numbers that must be more than 0 are looked at as what is used: 0 in float32, or a denormal that
// an update takes for 0.
TEST(UpdateRuleTest, MoreThanZeroMeansInTheVariablesDtype) {
  constexpr double kZero = 1e-46, kDenormal = 1e-40;
  for (const double tiny : {kZero, kDenormal}) {
    for (const OptimizerSpec& spec :
         {OptimizerSpec(Adagrad{.initial_accumulator_value = tiny}),
          OptimizerSpec(ProximalAdagrad{.initial_accumulator_value = tiny}),
          OptimizerSpec(AdagradDa{.initial_gradient_squared_accumulator_value = tiny}),
          OptimizerSpec(Ftrl{.learning_rate = tiny}),
          OptimizerSpec(AdagradDa{.learning_rate = tiny})}) {
      const absl::Status status = ErrorOf(spec);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << spec.rule << tiny;
      EXPECT_THAT(std::string(status.message()), HasSubstr("must be more than 0"));
      EXPECT_TRUE(ErrorOf(spec, at::kDouble).ok()) << spec.rule << tiny;
    }
  }
}

/// Applies a gradient of ones at steps 0 and `bad`, of which the second must be refused and change
/// nothing.
void ExpectRefusedAt(std::int64_t bad, const OptimizerSpec& spec, at::ScalarType dtype,
                     const std::string& rate) {
  SCOPED_TRACE(spec.rule);
  const auto variable = VariableOf(at::ones({2}, dtype));
  const auto rule = RuleOf(spec, variable);
  Apply(*rule, at::ones({2}, dtype), 0);
  const at::Tensor before = store::ValueOf(*variable);
  const absl::Status dense = rule->ApplyDense(at::ones({2}, dtype), bad).status();
  const absl::Status sparse =
      rule->ApplySparse({at::zeros({1}, at::kLong), at::ones({1}, dtype)}, bad).status();
  for (const absl::Status& status : {dense, sparse}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()),
                testing::AllOf(HasSubstr("learning_rate = " + rate),
                               HasSubstr("step " + std::to_string(bad)), HasSubstr("\"w\"")));
  }
  EXPECT_TRUE(at::equal(store::ValueOf(*variable), before));
  EXPECT_EQ(variable->version(), 2u);  // the test's Assign, and step 0
}

TEST(UpdateRuleTest, AScheduledRateThatDoesNotFitIsRefusedAtItsStep) {
  for (OptimizerSpec spec : kSpecs) {
    spec.learning_rate = PiecewiseConstant{.boundaries = {5}, .rates = {0.1, 1e300}};
    ExpectRefusedAt(6, spec, at::kFloat, "1e+300");
    spec.learning_rate = ExponentialDecay{.initial = 1, .decay_rate = 2};
    ExpectRefusedAt(5000, spec, at::kDouble, "inf");
  }
}

TEST(UpdateRuleTest, AScheduledRateThatBecomesZeroIsRefusedWhereItMustBePositive) {
  const LearningRate falling = ExponentialDecay{.initial = 1, .decay_rate = 0.1};
  for (const OptimizerSpec& spec : {OptimizerSpec(Ftrl{.learning_rate = falling}),
                                    OptimizerSpec(AdagradDa{.learning_rate = falling})}) {
    ExpectRefusedAt(40, spec, at::kFloat, "1e-40");
    ExpectRefusedAt(50, spec, at::kFloat, "1e-50");
  }
  Apply(*RuleOf(Sgd{.learning_rate = falling}, VariableOf(at::ones({2}))), at::ones({2}), 50);
}

TEST(UpdateRuleTest, RefusesOtherDtypes) {
  for (const at::ScalarType dtype : {at::kLong, at::kHalf, at::kComplexFloat}) {
    EXPECT_EQ(ErrorOf(Sgd{}, dtype).code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(UpdateRuleTest, CheckGradientNamesTheVariableAndBothShapes) {
  const auto variable = VariableOf(at::zeros({2, 3}));
  EXPECT_TRUE(CheckGradient(*variable, at::zeros({2, 3})).ok());
  const absl::Status status = CheckGradient(*variable, at::zeros({3, 2}));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "gradient of variable \"w\" is float32 [3, 2] but must be float32 [2, 3]");
  EXPECT_FALSE(CheckGradient(*variable, at::zeros({2, 3}, at::kDouble)).ok());
  EXPECT_FALSE(CheckGradient(*variable, at::Tensor()).ok());
  EXPECT_FALSE(CheckGradient(*variable, at::zeros({2, 3}).to_sparse()).ok());
}

TEST(UpdateRuleTest, AnUninitializedVariableIsNotUpdated) {
  const auto variable = std::make_shared<store::Variable>(store::DefOf(store::ConstantOf({2}, 0)));
  const auto rule = RuleOf(Momentum{}, variable);
  EXPECT_EQ(rule->ApplyDense(at::ones({2}), 0).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(variable->Initialize().ok());
  EXPECT_EQ(rule->ApplyDense(at::ones({2}), 0).value(), 0u);
  EXPECT_EQ(rule->ApplyDense(at::ones({2}), 0).value(), 1u);
}

TEST(UpdateRuleTest, AnyLayoutOfAGradientCountsElementByElement) {
  const at::Tensor gradient = at::arange(6, at::kFloat).reshape({3, 2}).t();
  for (const OptimizerSpec& spec : kSpecs) {
    const auto strided = VariableOf(at::zeros({2, 3}));
    const auto plain = VariableOf(at::zeros({2, 3}));
    Apply(*RuleOf(spec, strided), gradient);
    Apply(*RuleOf(spec, plain), gradient.contiguous());
    EXPECT_TRUE(at::equal(store::ValueOf(*strided), store::ValueOf(*plain))) << spec.rule;
    Apply(*RuleOf(spec, strided), at::ones({}).expand({2, 3}));
    Apply(*RuleOf(spec, plain), at::ones({2, 3}));
    EXPECT_TRUE(at::equal(store::ValueOf(*strided), store::ValueOf(*plain))) << spec.rule;
  }
}

TEST(UpdateRuleTest, EmptyVariablesAndScalars) {
  for (const OptimizerSpec& spec : kSpecs) {
    const auto empty = VariableOf(at::zeros({0, 3}));
    Apply(*RuleOf(spec, empty), at::zeros({0, 3}));
    EXPECT_EQ(empty->version(), 2u);
    const auto scalar = VariableOf(at::zeros({}));
    Apply(*RuleOf(spec, scalar), at::ones({}));
    EXPECT_LT(store::ValueOf(*scalar).item<float>(), 0);
  }
}

TEST(UpdateRuleTest, RulesOfOneScopeShareSlots) {
  const auto shared = VariableOf(at::zeros({2}));
  const auto apart = VariableOf(at::zeros({2}));
  const at::Tensor gradient = at::ones({2});
  Apply(*RuleOf(Momentum{}, shared, "a"), gradient);
  Apply(*RuleOf(Momentum{}, shared, "a"), gradient);
  Apply(*RuleOf(Momentum{}, apart, "a"), gradient);
  Apply(*RuleOf(Momentum{}, apart, "b"), gradient);
  EXPECT_NEAR(store::ValueOf(*shared)[0].item<double>(), -0.01 * (1 + 1.9), 1e-7);
  EXPECT_NEAR(store::ValueOf(*apart)[0].item<double>(), -0.01 * (1 + 1), 1e-7);
  EXPECT_EQ(shared->slots().size(), 1u);
  EXPECT_EQ(apart->slots().size(), 2u);
}

TEST(UpdateRuleTest, LockingIsAskedForByTheVariableOrTheOptimizer) {
  const at::Tensor gradient = at::ones({2});
  for (OptimizerSpec spec : kSpecs) {
    const auto variable = VariableOf(at::zeros({2}));
    Apply(*RuleOf(spec, variable), gradient);
    EXPECT_EQ(variable->lock_acquisitions(), 0u);
    spec.use_locking = true;
    Apply(*RuleOf(spec, variable), gradient);
    EXPECT_EQ(variable->lock_acquisitions(), 1u);
  }
}

// Elements do not depend on each other, so that splitting a pass changes no bit.
TEST(UpdateRuleTest, SeveralThreadsGiveTheSameBits) {
  constexpr std::int64_t kSize = kParallelElements + 12'345;
  const int threads_before = at::get_num_threads();
  at::manual_seed(3);
  const at::Tensor start = at::randn({kSize});
  const at::Tensor gradient = at::randn({kSize});
  for (const OptimizerSpec& spec : kSpecs) {
    const auto alone = VariableOf(start);
    const auto split = VariableOf(start);
    at::set_num_threads(1);
    Apply(*RuleOf(spec, alone), gradient);
    at::set_num_threads(3);
    EXPECT_TRUE(IsWorthSplitting(kSize));
    Apply(*RuleOf(spec, split), gradient);
    EXPECT_TRUE(at::equal(store::ValueOf(*alone), store::ValueOf(*split))) << spec.rule;
  }
  at::set_num_threads(threads_before);
}

}  // namespace
}  // namespace weir::optim
