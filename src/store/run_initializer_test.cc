#include "store/run_initializer.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "store/variable_testing.h"

// What is asked of the system's allocator below is more than the sanitizers' own allow; they are to
// refuse it as the system does, not to end the process.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
extern "C" const char* __tsan_default_options() {
  return "allocator_may_return_null=1";
}

namespace weir::store {
namespace {

using Kind = Initializer::Kind;

Initializer Draw(Kind kind, std::vector<std::int64_t> shape, double a, double b,
                 at::ScalarType dtype = at::kFloat) {
  Initializer initializer = ConstantOf(std::move(shape), a, dtype);
  initializer.kind = kind;
  initializer.b = b;
  return initializer;
}

at::Tensor Drawn(const Initializer& initializer, std::uint64_t seed = 1,
                 const std::string& name = "w") {
  const absl::StatusOr<at::Tensor> result = RunInitializer(initializer, seed, name);
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

absl::StatusCode CodeOf(const Initializer& initializer) {
  return RunInitializer(initializer, 1, "w").status().code();
}

TEST(RunInitializerTest, ConstantsOfAnyDtype) {
  EXPECT_TRUE(at::equal(Drawn(ConstantOf({2, 3}, 0.5)), at::full({2, 3}, 0.5, at::kFloat)));
  EXPECT_TRUE(at::equal(Drawn(ConstantOf({}, 7, at::kLong)), at::scalar_tensor(7, at::kLong)));
  EXPECT_TRUE(at::equal(Drawn(ConstantOf({2}, 1, at::kBool)), at::ones({2}, at::kBool)));
  EXPECT_TRUE(at::equal(Drawn(ConstantOf({2}, 1, at::kHalf)), at::ones({2}, at::kHalf)));
  EXPECT_EQ(Drawn(ConstantOf({0, 3}, 1)).numel(), 0);
}

TEST(RunInitializerTest, BuffersAreContiguousAndAligned) {
  for (const std::int64_t size : {1, 3, 1000, 100'000}) {
    const at::Tensor tensor = Drawn(ConstantOf({size}, 0));
    EXPECT_TRUE(tensor.is_contiguous());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % 64, 0u);
  }
}

class DrawTest : public testing::TestWithParam<Kind> {};

TEST_P(DrawTest, DependsOnSeedAndNameAlone) {
  for (const std::int64_t size : {1, 5, 1000}) {
    const Initializer initializer = Draw(GetParam(), {size}, 0.5, 2.0);
    const at::Tensor first = Drawn(initializer, 1, "a");
    EXPECT_TRUE(at::equal(first, Drawn(initializer, 1, "a")));
    EXPECT_FALSE(at::equal(first, Drawn(initializer, 1, "b")));
    EXPECT_FALSE(at::equal(first, Drawn(initializer, 2, "a")));
  }
}

TEST_P(DrawTest, LeavesTheGlobalGeneratorAlone) {
  const auto state = at::detail::getDefaultCPUGenerator().get_state();
  Drawn(Draw(GetParam(), {100}, 0.5, 2.0));
  EXPECT_TRUE(at::equal(state, at::detail::getDefaultCPUGenerator().get_state()));
}

TEST_P(DrawTest, RefusesIntegersAndNumbersThatMakeNoSense) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(CodeOf(Draw(GetParam(), {2}, 0.5, 2.0, at::kLong)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Draw(GetParam(), {2}, 3.0, -1.0)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Draw(GetParam(), {2}, 0.0, inf)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Draw(GetParam(), {2}, std::nan(""), 1)), absl::StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DrawTest,
                         testing::Values(Kind::kUniform, Kind::kNormal, Kind::kTruncatedNormal));

class MomentsTest : public testing::TestWithParam<at::ScalarType> {};

// Of 100,000 draws the mean is off by a standard error of stddev / 316, so that 5 of those never
// happen by chance, and nothing here is left to chance anyway: the seed is fixed.
constexpr std::int64_t kDraws = 100'000;

TEST_P(MomentsTest, Uniform) {
  const at::Tensor x = Drawn(Draw(Kind::kUniform, {kDraws}, -1, 3, GetParam())).to(at::kDouble);
  EXPECT_GE(x.min().item<double>(), -1);
  EXPECT_LT(x.max().item<double>(), 3);
  EXPECT_NEAR(x.mean().item<double>(), 1, 0.02);
  EXPECT_NEAR(x.std().item<double>(), 4 / std::sqrt(12.0), 0.02);
}

TEST_P(MomentsTest, Normal) {
  const at::Tensor x = Drawn(Draw(Kind::kNormal, {kDraws}, 3, 0.5, GetParam())).to(at::kDouble);
  EXPECT_NEAR(x.mean().item<double>(), 3, 0.008);
  EXPECT_NEAR(x.std().item<double>(), 0.5, 0.006);
  EXPECT_GT((x - 3).abs().max().item<double>(), 1.5);
}

// Cut at two deviations a normal distribution has 0.8796 of its deviation: the variance is
// 1 - 4 phi(2) / (2 Phi(2) - 1).
TEST_P(MomentsTest, TruncatedNormal) {
  const at::Tensor x =
      Drawn(Draw(Kind::kTruncatedNormal, {kDraws}, 3, 0.5, GetParam())).to(at::kDouble);
  EXPECT_NEAR(x.mean().item<double>(), 3, 0.008);
  EXPECT_NEAR(x.std().item<double>(), 0.5 * 0.879626, 0.005);
  EXPECT_LE((x - 3).abs().max().item<double>(), 1.0 + 1e-6);
  EXPECT_GT((x - 3).abs().max().item<double>(), 0.99);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, MomentsTest, testing::Values(at::kFloat, at::kDouble));

TEST(RunInitializerTest, HalfPrecisionIsDrawnToo) {
  const at::Tensor x = Drawn(Draw(Kind::kTruncatedNormal, {1000}, 0, 1, at::kBFloat16));
  EXPECT_EQ(x.scalar_type(), at::kBFloat16);
  EXPECT_LE(x.abs().max().item<double>(), 2.0);
}

TEST(RunInitializerTest, ValueIsCopied) {
  Initializer initializer = ConstantOf({2, 3}, 0);
  initializer.kind = Kind::kValue;
  initializer.value = at::arange(6, at::kFloat).reshape({3, 2}).t();
  const at::Tensor result = Drawn(initializer);
  EXPECT_TRUE(at::equal(result, initializer.value));
  EXPECT_TRUE(result.is_contiguous());
  EXPECT_FALSE(result.is_alias_of(initializer.value));
}

TEST(RunInitializerTest, RefusesWhatIsNoInitializer) {
  Initializer value = ConstantOf({2}, 0);
  value.kind = Kind::kValue;
  EXPECT_EQ(CodeOf(value), absl::StatusCode::kInvalidArgument) << "no value";
  value.value = at::ones({3});
  EXPECT_EQ(CodeOf(value), absl::StatusCode::kInvalidArgument) << "another shape";
  value.value = at::ones({2}, at::kDouble);
  EXPECT_EQ(CodeOf(value), absl::StatusCode::kInvalidArgument) << "another dtype";

  EXPECT_EQ(CodeOf(ConstantOf({2}, 0.5, at::kLong)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(ConstantOf({2}, 0, at::ScalarType::Undefined)),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(Draw(static_cast<Kind>(99), {2}, 0, 1)), absl::StatusCode::kInvalidArgument);
}

TEST(RunInitializerTest, SizesAreCheckedBeforeAnythingIsAllocated) {
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_EQ(CodeOf(ConstantOf({-1}, 0)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(ConstantOf({huge, huge}, 0)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(ConstantOf({std::numeric_limits<std::int64_t>::max()}, 0)),
            absl::StatusCode::kInvalidArgument);
}

TEST(RunInitializerTest, NoMemoryNamesTheVariableAndTheBytes) {
  const absl::Status status =
      RunInitializer(ConstantOf({std::int64_t{1} << 58}, 0), 1, "giant").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::HasSubstr("\"giant\""),
                             testing::HasSubstr("1152921504606846976 bytes"),
                             testing::Not(testing::HasSubstr("frame #"))));
}

}  // namespace
}  // namespace weir::store
