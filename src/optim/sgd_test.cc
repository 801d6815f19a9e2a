#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "optim/rule_testing.h"

namespace weir::optim {
namespace {

class SgdTest : public testing::TestWithParam<at::ScalarType> {};

// torch::optim::SGD is `parameter.add_(gradient, -lr)`.
TEST_P(SgdTest, EqualsTorchBitForBit) {
  for (const std::int64_t size : {1, 7, 100, 1023, 78'400}) {
    at::manual_seed(17);
    at::Tensor reference = at::randn({size}, GetParam());
    const auto variable = VariableOf(reference);
    const auto rule = RuleOf(Sgd{.learning_rate = 0.05}, variable);
    for (int step = 0; step < 200; ++step) {
      const at::Tensor gradient = at::randn({size}, GetParam());
      Apply(*rule, gradient);
      reference.add_(gradient, -0.05);
    }
    EXPECT_TRUE(at::equal(store::ValueOf(*variable), reference)) << size;
  }
}

// testBasic of TensorFlow's gradient_descent_test.py.
TEST_P(SgdTest, BasicStep) {
  const auto variable = VariableOf(at::tensor({1.0, 2.0}, GetParam()));
  Apply(*RuleOf(Sgd{.learning_rate = 3.0}, variable), at::tensor({0.1, 0.1}, GetParam()));
  const at::Tensor expected = at::tensor({1.0 - 3.0 * 0.1, 2.0 - 3.0 * 0.1}, at::kDouble);
  EXPECT_LT(MaxDifference(store::ValueOf(*variable), expected),
            GetParam() == at::kDouble ? 1e-15 : 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, SgdTest, testing::Values(at::kFloat, at::kDouble));

// 30 workers in strict rotation on f(w) = w^2 / 2: every gradient is 29 updates old, so that
// w(t+1) = w(t) - lr w(t-29). Stable below lr = 2 sin(pi/118) = 0.0532.
TEST(SgdStalenessTest, StaleGradientsActAsTheRecurrenceSays) {
  constexpr int kWorkers = 30;
  const std::map<double, double> after_1000 = {{0.1, 6324304.44544024},
                                               {0.06, 12.789805597188078},
                                               {0.05, -0.18971791376482416},
                                               {0.01, 1.2534697654111854e-07}};
  for (const auto& [learning_rate, expected] : after_1000) {
    const auto variable =
        store::InitializedVariable(store::DefOf(store::ConstantOf({}, 1, at::kDouble)));
    const auto rule = RuleOf(Sgd{.learning_rate = learning_rate}, variable);
    std::vector<store::Snapshot> pulled(kWorkers, variable->ReadCopy().value());
    for (std::size_t update = 0; update < 1000; ++update) {
      store::Snapshot& mine = pulled[update % kWorkers];
      const std::uint64_t version = rule->ApplyDense(mine.tensor, 0).value();
      variable->staleness().Record(version - mine.version);
      mine = variable->ReadCopy().value();
    }
    EXPECT_NEAR(store::ValueOf(*variable).item<double>() / expected, 1, 1e-9) << learning_rate;
    EXPECT_EQ(variable->staleness().Summarize().max, 29u);
    EXPECT_EQ(variable->staleness().Summarize().p50, 29u);
  }
}

}  // namespace
}  // namespace weir::optim
