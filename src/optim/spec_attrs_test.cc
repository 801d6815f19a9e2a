#include "optim/spec_attrs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::optim {
namespace {

AttrMap AttrsOf(const OptimizerSpec& spec) {
  AttrMap attrs;
  SetSpecAttrs(spec, attrs);
  return attrs;
}

TEST(SpecAttrsTest, ASpecComesBackWhole) {
  const OptimizerSpec spec = RmsProp{
      .learning_rate = WarmUp{.steps = 5,
                              .start = 0.25,
                              .then = PiecewiseConstant{.boundaries = {3, 4}, .rates = {1, 2, 3}}},
      .decay = 0.75,
      .centered = true,
      .use_locking = true};
  const auto back = SpecFromAttrs(AttrsOf(spec));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->rule, spec.rule);
  EXPECT_EQ(back->hyperparameters, spec.hyperparameters);
  EXPECT_TRUE(back->use_locking);
  EXPECT_EQ(back->learning_rate.schedule, "piecewise");
  EXPECT_EQ(back->learning_rate.numbers, spec.learning_rate.numbers);
  EXPECT_EQ(back->learning_rate.boundaries, spec.learning_rate.boundaries);
  EXPECT_EQ(back->learning_rate.rates, spec.learning_rate.rates);
  EXPECT_EQ(back->learning_rate.warm_up_steps, std::vector<double>{5});
  EXPECT_EQ(back->learning_rate.warm_up_starts, std::vector<double>{0.25});
  const auto cosine = SpecFromAttrs(AttrsOf(Sgd{.learning_rate = CosineDecay{.initial = 0.5}}));
  ASSERT_TRUE(cosine.ok());
  EXPECT_EQ(cosine->learning_rate.numbers, LearningRate(CosineDecay{.initial = 0.5}).numbers);
}

TEST(SpecAttrsTest, WhatIsMissingOrWrongIsRefused) {
  const AttrMap good = AttrsOf(Adam{});
  for (const auto& [name, value] : good) {
    AttrMap wrong = good;
    wrong[name] = std::int64_t{1};
    EXPECT_EQ(SpecFromAttrs(wrong).status().code(), absl::StatusCode::kInvalidArgument) << name;
    if (name.starts_with("hyper.") || name.starts_with("rate.number.")) continue;
    AttrMap missing = good;
    missing.erase(name);
    const absl::Status status = SpecFromAttrs(missing).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(name));
  }
}

}  // namespace
}  // namespace weir::optim
