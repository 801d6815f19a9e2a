#include "optim/kernels/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
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

template <typename T>
struct State {
  explicit State(std::int64_t size)
      : w(Draw<T>(size, 1)), m(Draw<T>(size, 2)), v(Draw<T>(size, 3)), g(Draw<T>(size, 4)) {
    for (T& value : v) value = std::abs(value);
  }
  std::vector<T> w, m, v, g;
};

template <typename T>
class KernelsTest : public testing::Test {
 protected:
  static SgdPass<T> Sgd(State<T>& state) {
    return {.w = state.w.data(), .g = state.g.data(), .minus_lr = T(-0.1)};
  }
  static MomentumPass<T> Momentum(State<T>& state, bool use_nesterov) {
    return {.w = state.w.data(),
            .a = state.m.data(),
            .g = state.g.data(),
            .lr = T(0.1),
            .momentum = T(0.9),
            .use_nesterov = use_nesterov};
  }
  static AdamPass<T> Adam(State<T>& state) {
    return {.w = state.w.data(),
            .m = state.m.data(),
            .v = state.v.data(),
            .g = state.g.data(),
            .alpha = T(0.01),
            .one_minus_beta1 = T(0.1),
            .one_minus_beta2 = T(0.001),
            .epsilon = T(1e-8)};
  }
};

using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(KernelsTest, Types);

TYPED_TEST(KernelsTest, SgdIsOneFusedMultiplyAdd) {
  for (const std::int64_t size : kSizes) {
    for (const Kernels<TypeParam>* kernels :
         {&BaselineKernels<TypeParam>(), &FastestKernels<TypeParam>()}) {
      State<TypeParam> state(size);
      std::vector<TypeParam> expected = state.w;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] = std::fma(TypeParam(-0.1), state.g[i], expected[i]);
      }
      kernels->sgd(this->Sgd(state), 0, size);
      EXPECT_TRUE(SameBits(state.w, expected)) << size;
    }
  }
}

TYPED_TEST(KernelsTest, BothInstructionSetsGiveTheSameBits) {
  const Kernels<TypeParam>* avx2 = Avx2Kernels<TypeParam>();
  if (avx2 == nullptr) GTEST_SKIP() << "no AVX2 here";
  const Kernels<TypeParam>& baseline = BaselineKernels<TypeParam>();
  for (const std::int64_t size : kSizes) {
    State<TypeParam> a(size);
    State<TypeParam> b(size);
    for (int step = 0; step < 3; ++step) {
      baseline.sgd(this->Sgd(a), 0, size);
      avx2->sgd(this->Sgd(b), 0, size);
      for (const bool use_nesterov : {false, true}) {
        baseline.momentum(this->Momentum(a, use_nesterov), 0, size);
        avx2->momentum(this->Momentum(b, use_nesterov), 0, size);
      }
      baseline.adam(this->Adam(a), 0, size);
      avx2->adam(this->Adam(b), 0, size);
    }
    EXPECT_TRUE(SameBits(a.w, b.w) && SameBits(a.m, b.m) && SameBits(a.v, b.v)) << size;
  }
}

TYPED_TEST(KernelsTest, OnlyTheRangeIsTouchedAndPartsMakeTheWhole) {
  constexpr std::int64_t kSize = 1000;
  State<TypeParam> whole(kSize);
  State<TypeParam> parts(kSize);
  const Kernels<TypeParam>& kernels = FastestKernels<TypeParam>();
  kernels.adam(this->Adam(whole), 0, kSize);
  kernels.adam(this->Adam(parts), 3, 501);
  EXPECT_EQ(parts.w[2], State<TypeParam>(kSize).w[2]);
  EXPECT_EQ(parts.w[501], State<TypeParam>(kSize).w[501]);
  kernels.adam(this->Adam(parts), 0, 3);
  kernels.adam(this->Adam(parts), 501, kSize);
  EXPECT_TRUE(SameBits(whole.w, parts.w) && SameBits(whole.v, parts.v));
}

// A gradient may be the variable's own buffer: w -= lr * w.
TYPED_TEST(KernelsTest, TheGradientMayBeTheVariable) {
  State<TypeParam> state(100);
  std::vector<TypeParam> expected = state.w;
  for (TypeParam& value : expected) value = std::fma(TypeParam(-0.1), value, value);
  SgdPass<TypeParam> pass = this->Sgd(state);
  pass.g = pass.w;
  FastestKernels<TypeParam>().sgd(pass, 0, 100);
  EXPECT_TRUE(SameBits(state.w, expected));
}

}  // namespace
}  // namespace weir::optim
