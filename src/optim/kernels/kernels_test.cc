#include "optim/kernels/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

namespace weir::optim {
namespace {

// Around the widths of vectors of both types, and a few of whole length.
constexpr std::int64_t kSizes[] = {0,  1,  2,  3,  4,  5,  7,  8,    9,
                                   15, 16, 17, 31, 33, 63, 65, 1000, 4099};

template <typename T>
std::vector<T> Draw(std::int64_t size, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<T> normal;
  std::vector<T> values(static_cast<std::size_t>(size));
  for (T& value : values) value = normal(engine);
  return values;
}

template <typename T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// A step whose numbers all have an influence: 0.1, 0.2, ... in the order of its members.
template <typename Step>
Step AnyStep() {
  using T = typename Step::Number;
  T numbers[sizeof(Step) / sizeof(T)];
  T next = 0;
  for (T& number : numbers) number = next += T(0.1);
  Step step;
  static_assert(std::is_trivially_copyable_v<Step> && sizeof(step) == sizeof(numbers));
  std::memcpy(&step, numbers, sizeof(step));
  return step;
}

/// The arrays of a step. Slots hold what is not negative, as sums of squares do, the first one
/// enough to be more than the square of a mean.
template <typename Step>
struct State {
  using T = typename Step::Number;
  explicit State(std::int64_t size) : w(Draw<T>(size, 1)), g(Draw<T>(size, 2)) {
    for (unsigned slot = 0; slot < Step::kSlots; ++slot) {
      slots.push_back(Draw<T>(size, 3 + slot));
      for (T& value : slots.back()) value = std::abs(value) + (slot == 0 ? T(20) : T(0));
    }
  }
  Operands<Step> operands() {
    Operands<Step> at{.w = w.data(), .g = g.data()};
    for (std::size_t i = 0; i < slots.size(); ++i) at.slots[i] = slots[i].data();
    return at;
  }
  bool operator==(const State& other) const {
    bool same = SameBits(w, other.w);
    for (std::size_t i = 0; i < slots.size(); ++i)
      same = same && SameBits(slots[i], other.slots[i]);
    return same;
  }
  std::vector<T> w, g;
  std::vector<std::vector<T>> slots;
};

template <typename Step>
class KernelsTest : public testing::Test {};

// All of steps.h, so that none can be forgotten here; each brings the comma before it.
template <typename Nothing, typename... Step>
using TypesAfter = testing::Types<Step...>;
#define WEIR_COMMA_STEP(...) , __VA_ARGS__
using Steps = TypesAfter<void WEIR_FOR_EACH_STEP(WEIR_COMMA_STEP)>;
#undef WEIR_COMMA_STEP
TYPED_TEST_SUITE(KernelsTest, Steps);

TEST(SgdStepTest, IsOneFusedMultiplyAdd) {
  for (const std::int64_t size : kSizes) {
    for (const auto* passes :
         {&BaselinePasses<SgdStep<float>>(), &FastestPasses<SgdStep<float>>()}) {
      State<SgdStep<float>> state(size);
      std::vector<float> expected = state.w;
      for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] = std::fma(-0.1F, state.g[i], expected[i]);
      passes->dense({.minus_lr = -0.1F}, state.operands(), 0, size);
      EXPECT_TRUE(SameBits(state.w, expected)) << size;
    }
  }
}

TYPED_TEST(KernelsTest, BothInstructionSetsGiveTheSameBits) {
  using Step = TypeParam;
  const Passes<Step>* avx2 = Avx2Passes<Step>();
  if (avx2 == nullptr) GTEST_SKIP() << "no AVX2 here";
  const Step step = AnyStep<Step>();
  for (const std::int64_t size : kSizes) {
    State<Step> a(size);
    State<Step> b(size);
    for (int update = 0; update < 3; ++update) {
      BaselinePasses<Step>().dense(step, a.operands(), 0, size);
      avx2->dense(step, b.operands(), 0, size);
      BaselinePasses<Step>().idle(step, a.operands(), 0, size / 2);
      avx2->idle(step, b.operands(), 0, size / 2);
    }
    EXPECT_TRUE(a == b) << size;
  }
}

TYPED_TEST(KernelsTest, EveryPassCallsTheStepOnceForEachElement) {
  using Step = TypeParam;
  constexpr std::int64_t kSize = 33;
  const Step step = AnyStep<Step>();
  State<Step> by_hand(kSize);
  State<Step> by_pass(kSize);
  for (std::size_t i = 0; i < kSize; ++i) {
    const auto call = [&]<std::size_t... kSlot>(std::index_sequence<kSlot...>) {
      step(by_hand.g[i], by_hand.w[i], by_hand.slots[kSlot][i]...);
    };
    call(std::make_index_sequence<Step::kSlots>());
  }
  BaselinePasses<Step>().dense(step, by_pass.operands(), 0, kSize);
  EXPECT_TRUE(by_hand == by_pass);
}

TYPED_TEST(KernelsTest, OnlyTheRangeIsTouchedAndPartsMakeTheWhole) {
  using Step = TypeParam;
  constexpr std::int64_t kSize = 1000;
  const Step step = AnyStep<Step>();
  const Passes<Step>& passes = FastestPasses<Step>();
  const State<Step> start(kSize);
  State<Step> whole(kSize);
  State<Step> parts(kSize);
  passes.dense(step, whole.operands(), 0, kSize);
  passes.dense(step, parts.operands(), 3, 501);
  EXPECT_EQ(parts.w[2], start.w[2]);
  EXPECT_EQ(parts.w[501], start.w[501]);
  passes.dense(step, parts.operands(), 0, 3);
  passes.dense(step, parts.operands(), 501, kSize);
  EXPECT_TRUE(whole == parts);
}

TYPED_TEST(KernelsTest, IdleIsDenseWithAGradientOfZeros) {
  using Step = TypeParam;
  constexpr std::int64_t kSize = 100;
  const Step step = AnyStep<Step>();
  State<Step> zeros(kSize);
  State<Step> idle(kSize);
  std::fill(zeros.g.begin(), zeros.g.end(), 0);
  idle.g = zeros.g;
  FastestPasses<Step>().dense(step, zeros.operands(), 0, kSize);
  Operands<Step> operands = idle.operands();
  operands.g = nullptr;
  FastestPasses<Step>().idle(step, operands, 0, kSize);
  EXPECT_TRUE(zeros == idle);
}

// Rows 7, 0, 3 of ten rows of ten get gradients 0, 1, 2; the first of them in a call of its own.
TYPED_TEST(KernelsTest, RowsAreUpdatedWhereTheyAreAndNoOthers) {
  using Step = TypeParam;
  constexpr std::int64_t kWidth = 10;
  constexpr std::int64_t kRows[] = {7, 0, 3};
  const Step step = AnyStep<Step>();
  const Passes<Step>& passes = FastestPasses<Step>();
  State<Step> by_rows(100);
  State<Step> by_hand(100);
  passes.rows(step, by_rows.operands(), kRows, kWidth, 0, 1);
  passes.rows(step, by_rows.operands(), kRows, kWidth, 1, 3);
  for (std::int64_t k = 0; k < 3; ++k) {
    Operands<Step> operands = by_hand.operands();
    operands.g += (k - kRows[k]) * kWidth;
    passes.dense(step, operands, kRows[k] * kWidth, (kRows[k] + 1) * kWidth);
  }
  EXPECT_TRUE(by_rows == by_hand);
}

// A gradient may be the variable's own buffer: w -= lr * w.
TEST(SgdStepTest, TheGradientMayBeTheVariable) {
  State<SgdStep<double>> state(100);
  std::vector<double> expected = state.w;
  for (double& value : expected) value = std::fma(-0.1, value, value);
  Operands<SgdStep<double>> operands = state.operands();
  operands.g = operands.w;
  FastestPasses<SgdStep<double>>().dense({.minus_lr = -0.1}, operands, 0, 100);
  EXPECT_TRUE(SameBits(state.w, expected));
}

}  // namespace
}  // namespace weir::optim
