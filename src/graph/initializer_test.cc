#include "weir/initializer.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>

namespace weir {
namespace {

using Kind = Initializer::Kind;
using Dims = std::vector<std::int64_t>;

TEST(InitializerTest, FactoriesKeepWhatTheyAreTold) {
  const Initializer constant = Constant({2, 3}, 0.1, at::kDouble);
  EXPECT_EQ(constant.kind, Kind::kConstant);
  EXPECT_EQ(constant.shape, (Dims{2, 3}));
  EXPECT_EQ(constant.dtype, at::kDouble);
  EXPECT_EQ(constant.a, 0.1);
  EXPECT_EQ(Zeros({1}).a, 0);
  EXPECT_EQ(Ones({1}, at::kLong).a, 1);
  EXPECT_EQ(Ones({1}, at::kLong).dtype, at::kLong);

  const Initializer uniform = Uniform({4}, -1, 2);
  EXPECT_EQ(uniform.kind, Kind::kUniform);
  EXPECT_EQ(uniform.a, -1);
  EXPECT_EQ(uniform.b, 2);
  EXPECT_EQ(uniform.dtype, at::kFloat);
}

TEST(InitializerTest, NormalTakesTheDeviationFirstAndStoresTheMeanFirst) {
  for (const Initializer& normal : {Normal({4}, 0.5, 3), TruncatedNormal({4}, 0.5, 3)}) {
    EXPECT_EQ(normal.a, 3);
    EXPECT_EQ(normal.b, 0.5);
  }
  EXPECT_EQ(Normal({4}, 0.5).kind, Kind::kNormal);
  EXPECT_EQ(TruncatedNormal({4}, 0.5).kind, Kind::kTruncatedNormal);
}

TEST(InitializerTest, GlorotCountsFansAsTheOperatorsOfPyTorchDo) {
  const auto bound = [](Dims shape) { return GlorotUniform(std::move(shape)).b; };
  EXPECT_DOUBLE_EQ(bound({784, 100}), std::sqrt(6.0 / 884));
  EXPECT_DOUBLE_EQ(bound({100, 784}), std::sqrt(6.0 / 884));
  EXPECT_DOUBLE_EQ(bound({32, 16, 3, 3}), std::sqrt(6.0 / (32 * 9 + 16 * 9)));
  EXPECT_DOUBLE_EQ(bound({10}), std::sqrt(6.0 / 20));
  EXPECT_DOUBLE_EQ(bound({}), std::sqrt(3.0));
  EXPECT_EQ(bound({0, 0}), 0);
  EXPECT_EQ(GlorotUniform({2, 2}).a, -GlorotUniform({2, 2}).b);
}

TEST(InitializerTest, ValueTakesShapeAndDtypeOfTheTensor) {
  const Initializer value = FromTensor(at::ones({2, 5}, at::kDouble));
  EXPECT_EQ(value.kind, Kind::kValue);
  EXPECT_EQ(value.shape, (Dims{2, 5}));
  EXPECT_EQ(value.dtype, at::kDouble);
  EXPECT_TRUE(value.value.defined());
  EXPECT_FALSE(FromTensor(at::Tensor()).value.defined());
}

}  // namespace
}  // namespace weir
