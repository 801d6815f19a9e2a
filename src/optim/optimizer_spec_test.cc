#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weir/optimizer.h"

namespace weir {
namespace {

using testing::ElementsAre;
using testing::Pair;

// Defaults of tf.train: AdamOptimizer states its own; the others ask for a rate, ours is 0.01.
TEST(OptimizerSpecTest, DefaultsAreTheOriginals) {
  const OptimizerSpec sgd = Sgd{};
  EXPECT_EQ(sgd.rule, "GradientDescent");
  EXPECT_THAT(sgd.hyperparameters, ElementsAre(Pair("learning_rate", 0.01)));
  EXPECT_FALSE(sgd.use_locking);

  const OptimizerSpec momentum = Momentum{};
  EXPECT_EQ(momentum.rule, "Momentum");
  EXPECT_THAT(
      momentum.hyperparameters,
      ElementsAre(Pair("learning_rate", 0.01), Pair("momentum", 0.9), Pair("use_nesterov", 0)));

  const OptimizerSpec adam = Adam{};
  EXPECT_EQ(adam.rule, "Adam");
  EXPECT_THAT(adam.hyperparameters,
              ElementsAre(Pair("beta1", 0.9), Pair("beta2", 0.999), Pair("epsilon", 1e-8),
                          Pair("learning_rate", 0.001)));
}

TEST(OptimizerSpecTest, LockingAndFlagsTravel) {
  EXPECT_TRUE(OptimizerSpec(Sgd{.use_locking = true}).use_locking);
  EXPECT_TRUE(OptimizerSpec(Adam{.use_locking = true}).use_locking);
  const OptimizerSpec momentum = Momentum{.use_nesterov = true, .use_locking = true};
  EXPECT_TRUE(momentum.use_locking);
  EXPECT_EQ(momentum.hyperparameters.at("use_nesterov"), 1);
}

}  // namespace
}  // namespace weir
