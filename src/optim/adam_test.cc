#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "optim/rule_testing.h"

namespace weir::optim {
namespace {

constexpr std::int64_t kSize = 1003;

/// The formula of TensorFlow's AdamOptimizer in type T, the rate of a step in double: the order of
/// operations that kernels.h and weir/optimizer.h state. For double these are TensorFlow's numbers.
template <typename T>
struct Reference {
  std::vector<T> w, m, v;
  double lr = 0.001, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double beta1_power = 0.9, beta2_power = 0.999;

  void Step(const T* g) {
    const T alpha = static_cast<T>(lr * std::sqrt(1 - beta2_power) / (1 - beta1_power));
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = m[i] + (g[i] - m[i]) * static_cast<T>(1 - beta1);
      v[i] = v[i] + (g[i] * g[i] - v[i]) * static_cast<T>(1 - beta2);
      w[i] = w[i] - (m[i] * alpha) / (std::sqrt(v[i]) + static_cast<T>(epsilon));
    }
    beta1_power *= beta1;
    beta2_power *= beta2;
  }
};

template <typename T>
void ExpectFollowsReference(double tolerance) {
  const at::ScalarType dtype = c10::CppTypeToScalarType<T>::value;
  at::manual_seed(6);
  const at::Tensor start = at::randn({kSize}, dtype);
  const auto variable = VariableOf(start);
  const auto rule = RuleOf(Adam{}, variable);
  const T* begin = start.const_data_ptr<T>();
  Reference<T> reference{
      .w = {begin, begin + kSize}, .m = std::vector<T>(kSize), .v = std::vector<T>(kSize)};
  for (int step = 0; step < 100; ++step) {
    const at::Tensor gradient = at::randn({kSize}, dtype);
    Apply(*rule, gradient);
    reference.Step(gradient.const_data_ptr<T>());
  }
  const at::Tensor w = store::ValueOf(*variable);
  const auto slots = variable->slots();
  for (std::size_t i = 0; i < kSize; ++i) {
    ASSERT_NEAR(w.const_data_ptr<T>()[i], reference.w[i], tolerance) << i;
    ASSERT_NEAR(slots.at("scope/m").const_data_ptr<T>()[i], reference.m[i], tolerance) << i;
    ASSERT_NEAR(slots.at("scope/v").const_data_ptr<T>()[i], reference.v[i], tolerance) << i;
  }
  EXPECT_NEAR(slots.at("scope/beta1_power").item<double>(), std::pow(0.9, 101), 1e-15);
  EXPECT_NEAR(slots.at("scope/beta2_power").item<double>(), std::pow(0.999, 101), 1e-12);
}

TEST(AdamTest, FollowsTheFormulaFor100Steps) {
  ExpectFollowsReference<float>(1e-6);
  ExpectFollowsReference<double>(1e-12);
}

// adam_update_numpy of TensorFlow's adam_test.py, another way to write the same sum.
TEST(AdamTest, FollowsTensorFlowsOwnReference) {
  const auto variable = VariableOf(at::tensor({1.0, 2.0}, at::kDouble));
  const auto rule = RuleOf(Adam{}, variable);
  double w[] = {1.0, 2.0}, m[] = {0, 0}, v[] = {0, 0};
  for (int t = 1; t <= 3; ++t) {
    Apply(*rule, at::tensor({0.1, 0.1}, at::kDouble));
    const double alpha = 0.001 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
    for (int i = 0; i < 2; ++i) {
      m[i] = 0.9 * m[i] + (1 - 0.9) * 0.1;
      v[i] = 0.999 * v[i] + (1 - 0.999) * 0.1 * 0.1;
      w[i] -= alpha * m[i] / (std::sqrt(v[i]) + 1e-8);
    }
    EXPECT_LT(MaxDifference(store::ValueOf(*variable), at::tensor({w[0], w[1]}, at::kDouble)),
              1e-12);
  }
}

// The count of steps is the variable's, not the worker's. With a gradient of 1 throughout,
// m = 1 - beta1^t and v = 1 - beta2^t, so that each step is lr / (1 + epsilon / sqrt(v)); a second
// worker that began to count anew would give -0.00234.
TEST(AdamTest, WorkersShareTheCountOfSteps) {
  const auto variable = VariableOf(at::zeros({}, at::kDouble));
  const at::Tensor one = at::ones({}, at::kDouble);
  double expected = 0;
  for (int t = 1; t <= 2; ++t) {
    Apply(*RuleOf(Adam{}, variable), one);
    expected -= 0.001 / (1 + 1e-8 / std::sqrt(1 - std::pow(0.999, t)));
    EXPECT_NEAR(store::ValueOf(*variable).item<double>(), expected, 1e-12);
  }
  EXPECT_NEAR(expected, -0.002, 1e-9);
}

TEST(AdamTest, SlotsHaveTheOriginalsNamesAndFirstValues) {
  const auto variable = VariableOf(at::ones({2}));
  RuleOf(Adam{.beta1 = 0.8, .beta2 = 0.95}, variable, "Adam");
  const auto slots = variable->slots();
  EXPECT_THAT(slots, testing::ElementsAre(testing::Key("Adam/beta1_power"),
                                          testing::Key("Adam/beta2_power"), testing::Key("Adam/m"),
                                          testing::Key("Adam/v")));
  EXPECT_EQ(slots.at("Adam/beta1_power").item<double>(), 0.8);
  EXPECT_EQ(slots.at("Adam/beta2_power").item<double>(), 0.95);
  EXPECT_TRUE(at::equal(slots.at("Adam/m"), at::zeros({2})));
}

TEST(AdamTest, PowersCountEveryUpdateWhoeverElseIsAtIt) {
  const auto variable = VariableOf(at::zeros({8}));
  const auto rule = RuleOf(Adam{.beta2 = 0.9999}, variable);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      const at::Tensor gradient = at::ones({8});
      for (int i = 0; i < 500; ++i) Apply(*rule, gradient);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NEAR(variable->slots().at("scope/beta2_power").item<double>(), std::pow(0.9999, 2001),
              1e-12);
  EXPECT_EQ(variable->lock_acquisitions(), 0u);
}

TEST(AdamTest, RefusesBetasThatCannotBe) {
  const auto variable = VariableOf(at::zeros({2}));
  for (const Adam& adam : {Adam{.beta1 = 1.0}, Adam{.beta1 = -0.1}, Adam{.beta2 = 1.5},
                           Adam{.epsilon = -1e-8}, Adam{.learning_rate = 1e300}}) {
    EXPECT_EQ(MakeUpdateRule(adam, "Adam", variable).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(variable->slots().empty());
}

}  // namespace
}  // namespace weir::optim
