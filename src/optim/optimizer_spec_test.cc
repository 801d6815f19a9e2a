#include <gtest/gtest.h>

#include <map>
#include <string>

#include "weir/optimizer.h"

namespace weir {
namespace {

using Numbers = std::map<std::string, double>;

void ExpectDefaults(const OptimizerSpec& spec, const std::string& rule, double rate,
                    const Numbers& numbers) {
  EXPECT_EQ(spec.rule, rule);
  EXPECT_EQ(spec.learning_rate.numbers, (Numbers{{"initial", rate}})) << rule;
  EXPECT_TRUE(spec.learning_rate.is_constant()) << rule;
  EXPECT_EQ(spec.hyperparameters, numbers) << rule;
  EXPECT_FALSE(spec.use_locking) << rule;
}

// Defaults of tf.train, of contrib's LazyAdam, PyTorch's AdamW and TensorFlow Addons' LAMB; where
// they ask for a rate, ours is 0.01.
TEST(OptimizerSpecTest, DefaultsAreTheOriginals) {
  const Numbers adam = {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}};
  ExpectDefaults(Sgd{}, "GradientDescent", 0.01, {});
  ExpectDefaults(Momentum{}, "Momentum", 0.01, {{"momentum", 0.9}, {"use_nesterov", 0}});
  ExpectDefaults(Adagrad{}, "Adagrad", 0.01, {{"initial_accumulator_value", 0.1}});
  ExpectDefaults(AdagradDa{}, "AdagradDA", 0.01,
                 {{"initial_gradient_squared_accumulator_value", 0.1}, {"l1", 0}, {"l2", 0}});
  ExpectDefaults(Adadelta{}, "Adadelta", 0.001, {{"rho", 0.95}, {"epsilon", 1e-8}});
  ExpectDefaults(Adam{}, "Adam", 0.001, adam);
  ExpectDefaults(LazyAdam{}, "LazyAdam", 0.001, adam);
  Numbers adamw = adam;
  adamw["weight_decay"] = 0.01;
  ExpectDefaults(AdamW{}, "AdamW", 0.001, adamw);
  ExpectDefaults(Lamb{}, "LAMB", 0.001,
                 {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-6}, {"weight_decay", 0}});
  ExpectDefaults(Ftrl{}, "Ftrl", 0.01,
                 {{"learning_rate_power", -0.5},
                  {"initial_accumulator_value", 0.1},
                  {"l1", 0},
                  {"l2", 0},
                  {"l2_shrinkage", 0}});
  ExpectDefaults(RmsProp{}, "RMSProp", 0.001,
                 {{"decay", 0.9}, {"momentum", 0}, {"epsilon", 1e-10}, {"centered", 0}});
  ExpectDefaults(ProximalGradientDescent{}, "ProximalGradientDescent", 0.01,
                 {{"l1", 0}, {"l2", 0}});
  ExpectDefaults(ProximalAdagrad{}, "ProximalAdagrad", 0.01,
                 {{"initial_accumulator_value", 0.1}, {"l1", 0}, {"l2", 0}});
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
