#include "store/dense.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::store {
namespace {

TEST(DenseTest, AcceptsAnyStridedTensorOfTheShape) {
  EXPECT_TRUE(CheckDense(at::ones({2, 3}), at::kFloat, {2, 3}, "it").ok());
  EXPECT_TRUE(CheckDense(at::ones({3, 2}).t(), at::kFloat, {2, 3}, "it").ok());
  EXPECT_TRUE(CheckDense(at::ones({}).expand({2, 3}), at::kFloat, {2, 3}, "it").ok());
}

TEST(DenseTest, RefusalsNameBothSides) {
  const absl::Status shape = CheckDense(at::ones({2}), at::kFloat, {2, 3}, "gradient of \"w\"");
  EXPECT_EQ(shape.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(shape.message()),
            "gradient of \"w\" is float32 [2] but must be float32 [2, 3]");
  EXPECT_FALSE(CheckDense(at::ones({2}, at::kDouble), at::kFloat, {2}, "it").ok());
  EXPECT_FALSE(CheckDense(at::Tensor(), at::kFloat, {2}, "it").ok());
  EXPECT_FALSE(CheckDense(at::eye(2).to_sparse(), at::kFloat, {2, 2}, "it").ok());
  EXPECT_FALSE(CheckDense(at::ones({2}, at::kMeta), at::kFloat, {2}, "it").ok());
}

TEST(DenseTest, PlainTensorsAreNotCopied) {
  const at::Tensor tensor = at::ones({4});
  EXPECT_EQ(ToPlain(tensor).const_data_ptr(), tensor.const_data_ptr());
}

TEST(DenseTest, EverythingElseIsMadePlain) {
  const at::Tensor transposed = at::arange(6, at::kFloat).reshape({2, 3}).t();
  EXPECT_TRUE(ToPlain(transposed).is_contiguous());
  EXPECT_TRUE(at::equal(ToPlain(transposed), transposed));

  // The imaginary part of a conjugate is a view whose negation is pending.
  const at::Tensor negated =
      at::imag(at::complex(at::zeros({3}), at::arange(3, at::kFloat)).conj());
  ASSERT_TRUE(negated.is_neg());
  const at::Tensor plain = ToPlain(negated);
  EXPECT_FALSE(plain.is_neg());
  EXPECT_EQ(plain.const_data_ptr<float>()[2], -2.0f);

  const at::Tensor zeros = at::_efficientzerotensor({3}, at::kFloat);
  ASSERT_NE(ToPlain(zeros).const_data_ptr(), nullptr);
  EXPECT_TRUE(at::equal(ToPlain(zeros), at::zeros({3})));
}

TEST(DenseTest, AutogradIsLeftBehind) {
  EXPECT_FALSE(ToPlain(at::ones({2}).set_requires_grad(true)).requires_grad());
}

}  // namespace
}  // namespace weir::store
