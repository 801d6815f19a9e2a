#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "optim/rule_testing.h"

namespace weir::optim {
namespace {

constexpr std::int64_t kSize = 1003;

/// TensorFlow's formula in type T, each operation in the order that kernels.h states.
template <typename T>
struct Reference {
  T lr, momentum;
  bool use_nesterov;
  std::vector<T> w, a;

  void Step(const T* g) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      a[i] = a[i] * momentum + g[i];
      const T delta = use_nesterov ? g[i] * lr + (a[i] * momentum) * lr : a[i] * lr;
      w[i] = w[i] - delta;
    }
  }
};

template <typename T>
void ExpectFollowsReference(bool use_nesterov, double tolerance) {
  const at::ScalarType dtype = c10::CppTypeToScalarType<T>::value;
  at::manual_seed(5);
  const at::Tensor start = at::randn({kSize}, dtype);
  const auto variable = VariableOf(start);
  const auto rule = RuleOf(
      Momentum{.learning_rate = 0.01, .momentum = 0.9, .use_nesterov = use_nesterov}, variable);
  const T* begin = start.const_data_ptr<T>();
  Reference<T> reference{.lr = T(0.01),
                         .momentum = T(0.9),
                         .use_nesterov = use_nesterov,
                         .w = {begin, begin + kSize},
                         .a = std::vector<T>(kSize)};
  for (int step = 0; step < 100; ++step) {
    const at::Tensor gradient = at::randn({kSize}, dtype);
    Apply(*rule, gradient);
    reference.Step(gradient.const_data_ptr<T>());
  }
  const at::Tensor w = store::ValueOf(*variable);
  const at::Tensor a = variable->slots().at("scope/momentum");
  for (std::size_t i = 0; i < kSize; ++i) {
    ASSERT_NEAR(w.const_data_ptr<T>()[i], reference.w[i], tolerance) << i;
    ASSERT_NEAR(a.const_data_ptr<T>()[i], reference.a[i], tolerance) << i;
  }
}

TEST(MomentumTest, FollowsTheFormulaFor100Steps) {
  for (const bool use_nesterov : {false, true}) {
    ExpectFollowsReference<float>(use_nesterov, 1e-6);
    ExpectFollowsReference<double>(use_nesterov, 1e-12);
  }
}

// testBasic of TensorFlow's momentum_test.py.
TEST(MomentumTest, TwoBasicSteps) {
  const auto variable = VariableOf(at::tensor({1.0, 2.0}, at::kDouble));
  const auto rule = RuleOf(Momentum{.learning_rate = 2.0, .momentum = 0.9}, variable);
  const at::Tensor gradient = at::tensor({0.1, 0.1}, at::kDouble);
  const at::Tensor slot = variable->slots().at("scope/momentum");
  Apply(*rule, gradient);
  EXPECT_LT(MaxDifference(slot, at::tensor({0.1, 0.1}, at::kDouble)), 1e-15);
  EXPECT_LT(MaxDifference(store::ValueOf(*variable),
                          at::tensor({1.0 - (0.1 * 2.0), 2.0 - (0.1 * 2.0)}, at::kDouble)),
            1e-15);
  Apply(*rule, gradient);
  const double second = (0.9 * 0.1 + 0.1) * 2.0;
  EXPECT_LT(MaxDifference(slot, at::tensor({0.9 * 0.1 + 0.1, 0.9 * 0.1 + 0.1}, at::kDouble)),
            1e-15);
  EXPECT_LT(MaxDifference(
                store::ValueOf(*variable),
                at::tensor({1.0 - (0.1 * 2.0) - second, 2.0 - (0.1 * 2.0) - second}, at::kDouble)),
            1e-15);
}

// Two workers' gradients applied one by one, as asynchronous training does.
TEST(MomentumTest, GradientsOfSeveralWorkersShareTheSlot) {
  const auto variable = VariableOf(at::zeros({}, at::kDouble));
  const auto first = RuleOf(Momentum{.learning_rate = 0.1}, variable);
  const auto second = RuleOf(Momentum{.learning_rate = 0.1}, variable);
  const at::Tensor one = at::ones({}, at::kDouble);
  for (const double expected : {-0.1, -0.29, -0.561, -0.9049}) {
    Apply(variable->version() % 2 == 1 ? *first : *second, one);
    EXPECT_NEAR(store::ValueOf(*variable).item<double>(), expected, 1e-12);
  }
  EXPECT_NEAR(variable->slots().at("scope/momentum").item<double>(), 3.439, 1e-12);
}

#if defined(__SSE2__)
// Half of the least normal number is denormal, and slow for hundreds of updates.
TEST(MomentumTest, ASlotThatDecaysBelowTheLeastNormalNumberIsZero) {
  const auto variable = VariableOf(at::zeros({kSize}));
  const auto rule = RuleOf(Momentum{.learning_rate = 1.0, .momentum = 0.5}, variable);
  const at::Tensor slot = variable->slots().at("scope/momentum");
  const float least = std::numeric_limits<float>::min();
  Apply(*rule, at::full({kSize}, least));
  EXPECT_TRUE(at::equal(slot, at::full({kSize}, least)));
  Apply(*rule, at::zeros({kSize}));
  EXPECT_EQ(at::count_nonzero(slot).item<std::int64_t>(), 0);
  volatile float half = least;
  half = half / 2;
  EXPECT_NE(half, 0.0F) << "the thread's mode has been restored";
}
#endif

}  // namespace
}  // namespace weir::optim
