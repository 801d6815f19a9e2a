// The literal numbers of the original's optimizer tests (python/training/*_test.py): learning rate
// 3, accumulators of 0.1, gradients [0.1, 0.2] of one variable and [0.01, 0.02] of another. Each is
// checked for both dtypes, for dense gradients, for sparse ones, and for sparse ones that give a
// row's gradient in two parts.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "optim/rule_testing.h"

namespace weir::optim {
namespace {

struct Golden {
  std::string name;
  OptimizerSpec spec;
  int steps;
  std::vector<double> first;
  std::vector<double> gradient;
  std::vector<double> expected;
};

const std::vector<double> kGradient = {0.1, 0.2, 0.01, 0.02};
const std::vector<double> kFirst = {1, 2, 4, 3};
const std::vector<double> kZeros = {0, 0, 0, 0};

const Golden kGoldens[] = {
    {"Adagrad",
     Adagrad{.learning_rate = 3},
     3,
     {1, 2, 3, 4},
     {0.1, 0.1, 0.01, 0.01},
     {-1.60260987, -0.60260987, 2.71567917, 3.71567917}},
    {"FtrlFromZero",
     Ftrl{.learning_rate = 3},
     3,
     kZeros,
     kGradient,
     {-2.60260963, -4.29698515, -0.28432083, -0.56694895}},
    {"Ftrl",
     Ftrl{.learning_rate = 3},
     3,
     kFirst,
     kGradient,
     {-2.55607247, -3.98729396, -0.28232238, -0.56096673}},
    {"FtrlL1",
     Ftrl{.learning_rate = 3, .l1 = 0.001},
     10,
     kFirst,
     kGradient,
     {-7.66718769, -10.91273689, -0.93460727, -1.86147261}},
    {"FtrlL1L2",
     Ftrl{.learning_rate = 3, .l1 = 0.001, .l2 = 2},
     10,
     kFirst,
     kGradient,
     {-0.24059935, -0.46829352, -0.02406147, -0.04830509}},
    {"FtrlShrinkage",
     Ftrl{.learning_rate = 3, .l1 = 0.001, .l2 = 2, .l2_shrinkage = 0.1},
     10,
     kFirst,
     kGradient,
     {-0.22578995, -0.44345796, -0.14378493, -0.13229476}},
    {"AdagradDa",
     AdagradDa{.learning_rate = 3},
     1,
     kZeros,
     kGradient,
     {-0.904534, -1.603567, -0.094821, -0.189358}},
    {"AdagradDaL1",
     AdagradDa{.learning_rate = 3, .l1 = 0.001},
     1,
     kFirst,
     kGradient,
     {-0.895489, -1.59555, -0.085339, -0.17989}},
    {"AdagradDaL1L2",
     AdagradDa{.learning_rate = 3, .l1 = 0.001, .l2 = 2},
     1,
     kFirst,
     kGradient,
     {-0.046907, -0.093659, -0.004275, -0.009023}},
    {"ProximalAdagrad",
     ProximalAdagrad{.learning_rate = 3},
     3,
     kFirst,
     kGradient,
     {-1.60261, -2.296985, 3.715679, 2.433051}},
    {"ProximalAdagradL1",
     ProximalAdagrad{.learning_rate = 3, .l1 = 0.001},
     10,
     kFirst,
     kGradient,
     {-6.663634, -9.190331, 2.959304, 1.029232}},
    {"ProximalAdagradL1L2",
     ProximalAdagrad{.learning_rate = 3, .l1 = 0.001, .l2 = 2},
     10,
     kFirst,
     kGradient,
     {-0.0495, -0.0995, -0.0045, -0.0095}},
    {"ProximalGradientDescent",
     ProximalGradientDescent{.learning_rate = 3},
     3,
     kFirst,
     kGradient,
     {0.1, 0.2, 3.91, 2.82}},
    {"ProximalGradientDescentL1L2",
     ProximalGradientDescent{.learning_rate = 3, .l1 = 0.001, .l2 = 2},
     10,
     kFirst,
     kGradient,
     {-0.0495, -0.0995, -0.0045, -0.0095}},
};

class GoldensTest : public testing::TestWithParam<Golden> {
 protected:
  // Two rows of two.
  static at::Tensor Rows(const std::vector<double>& values, at::ScalarType dtype) {
    return at::tensor(values, at::kDouble).reshape({2, 2}).to(dtype);
  }

  template <typename ApplyOnce>
  static void Check(const ApplyOnce& apply_once) {
    const Golden& golden = GetParam();
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      const auto variable = VariableOf(Rows(golden.first, dtype));
      const auto rule = RuleOf(golden.spec, variable);
      for (int step = 0; step < golden.steps; ++step)
        apply_once(*rule, Rows(golden.gradient, dtype), step);
      const at::Tensor expected = Rows(golden.expected, at::kDouble);
      const at::Tensor got = store::ValueOf(*variable).to(at::kDouble);
      // The original's assertAllCloseAccordingToType has 1e-6; its literals have seven digits.
      EXPECT_TRUE(at::allclose(got, expected, /*rtol=*/2e-6, /*atol=*/1e-6))
          << golden.name << ": " << got << expected;
    }
  }
};

TEST_P(GoldensTest, Dense) {
  Check(
      [](UpdateRule& rule, const at::Tensor& gradient, int step) { Apply(rule, gradient, step); });
}

TEST_P(GoldensTest, Sparse) {
  Check([](UpdateRule& rule, const at::Tensor& gradient, int step) {
    ApplyRows(rule, {1, 0}, gradient.flip(0), step);
  });
}

TEST_P(GoldensTest, RowsInParts) {
  Check([](UpdateRule& rule, const at::Tensor& gradient, int step) {
    const at::Tensor part = gradient * 0.25;
    ApplyRows(rule, {1, 0, 1, 0}, at::cat({part.flip(0), (gradient - part).flip(0)}), step);
  });
}

INSTANTIATE_TEST_SUITE_P(All, GoldensTest, testing::ValuesIn(kGoldens),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace weir::optim
