// Against torch::optim where the rules agree: the same numbers for 100 steps, float64 to 1e-6 of
// their size. In float32 to 2e-5 of theirs or of 1: either rounds a few times for each step, by
// 6e-8 of numbers about 1, and in an order of its own.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <memory>
#include <vector>

#include "optim/rule_testing.h"

namespace weir::optim {
namespace {

template <typename TorchOptimizer, typename Options>
void ExpectSameIn(at::ScalarType dtype, const OptimizerSpec& spec, const Options& options,
                  const char* zeroed_slot) {
  at::manual_seed(5);
  const at::Tensor start = at::randn({301}, dtype);
  const auto variable = VariableOf(start);
  const auto rule = RuleOf(spec, variable);
  if (zeroed_slot != nullptr) variable->slots().at(zeroed_slot).zero_();
  at::Tensor parameter = start.clone().requires_grad_();
  TorchOptimizer torch_optimizer(std::vector<at::Tensor>{parameter}, options);
  for (int step = 0; step < 100; ++step) {
    const at::Tensor gradient = at::randn({301}, dtype);
    Apply(*rule, gradient, step);
    parameter.mutable_grad() = gradient;
    torch_optimizer.step();
  }
  const bool is_double = dtype == at::kDouble;
  EXPECT_TRUE(at::allclose(store::ValueOf(*variable), parameter.detach(), is_double ? 1e-6 : 2e-5,
                           is_double ? 0 : 2e-5))
      << spec.rule << " in " << dtype;
}

template <typename TorchOptimizer, typename Options>
void ExpectSameAsTorch(const OptimizerSpec& spec, const Options& options,
                       const char* zeroed_slot = nullptr) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble})
    ExpectSameIn<TorchOptimizer>(dtype, spec, options, zeroed_slot);
}

using namespace torch::optim;  // NOLINT: the options' names

TEST(TorchTest, AdamW) {
  ExpectSameAsTorch<torch::optim::AdamW>(
      weir::AdamW{.learning_rate = 0.01, .epsilon = 1e-3, .weight_decay = 0.1},
      AdamWOptions(0.01).eps(1e-3).weight_decay(0.1));
}

// The epsilons stand in different places.
TEST(TorchTest, AdamWithoutEpsilon) {
  ExpectSameAsTorch<torch::optim::Adam>(weir::Adam{.learning_rate = 0.01, .epsilon = 0},
                                        AdamOptions(0.01).eps(0));
}

TEST(TorchTest, AdagradWithoutEpsilon) {
  ExpectSameAsTorch<torch::optim::Adagrad>(
      weir::Adagrad{.learning_rate = 0.1, .initial_accumulator_value = 0.3},
      AdagradOptions(0.1).eps(0).initial_accumulator_value(0.3));
}

// PyTorch's mean of squares begins at 0, and its epsilon stands outside the root.
TEST(TorchTest, RmsPropFromZeroWithoutEpsilon) {
  for (const bool centered : {false, true}) {
    ExpectSameAsTorch<torch::optim::RMSprop>(
        weir::RmsProp{.learning_rate = 0.01,
                      .decay = 0.8,
                      .momentum = 0.5,
                      .epsilon = 0,
                      .centered = centered},
        RMSpropOptions(0.01).alpha(0.8).momentum(0.5).eps(0).centered(centered), "scope/rms");
  }
}

TEST(TorchTest, SgdAndMomentum) {
  ExpectSameAsTorch<torch::optim::SGD>(weir::Sgd{.learning_rate = 0.1}, SGDOptions(0.1));
  for (const bool nesterov : {false, true}) {
    ExpectSameAsTorch<torch::optim::SGD>(
        weir::Momentum{.learning_rate = 0.1, .momentum = 0.8, .use_nesterov = nesterov},
        SGDOptions(0.1).momentum(0.8).nesterov(nesterov));
  }
}

}  // namespace
}  // namespace weir::optim
