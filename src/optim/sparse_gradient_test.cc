#include "optim/sparse_gradient.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "optim/dense_pass.h"
#include "optim/rule_testing.h"

namespace weir::optim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

at::Tensor Ids(std::vector<std::int64_t> ids) {
  return at::tensor(ids, at::kLong);
}

absl::Status ErrorOf(const at::Tensor& indices, const at::Tensor& values) {
  return CheckSparseGradient(*VariableOf(at::zeros({5, 2})), indices, values).status();
}

TEST(SparseGradientTest, AnIdThatIsNoRowNamesItselfTheVariableAndItsRows) {  // C5-12
  for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{5}, std::int64_t{1} << 62}) {
    const absl::Status status = ErrorOf(Ids({0, id}), at::zeros({2, 2}));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(std::to_string(id)), HasSubstr("\"w\""), HasSubstr("5 rows")));
  }
  EXPECT_TRUE(ErrorOf(Ids({0, 4}), at::zeros({2, 2})).ok());
}

TEST(SparseGradientTest, RefusesOtherShapesAndDtypes) {
  for (const absl::Status& status :
       {ErrorOf(Ids({0, 1}), at::zeros({3, 2})), ErrorOf(Ids({0, 1}), at::zeros({2, 3})),
        ErrorOf(Ids({0, 1}), at::zeros({2, 2}, at::kDouble)), ErrorOf(Ids({0, 1}), at::Tensor()),
        ErrorOf(at::Tensor(), at::zeros({2, 2})), ErrorOf(at::zeros({2}), at::zeros({2, 2})),
        ErrorOf(Ids({0, 1}).reshape({1, 2}), at::zeros({2, 2})),
        CheckSparseGradient(*VariableOf(at::zeros({})), Ids({0}), at::zeros({1})).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("\"w\""));
  }
}

TEST(SparseGradientTest, AnyLayoutAndInt32AreTaken) {
  const auto variable = VariableOf(at::zeros({5, 2}));
  const auto gradient =
      CheckSparseGradient(*variable, at::tensor({3, 9, 1, 9}, at::kInt).slice(0, 0, 4, 2),
                          at::arange(4, at::kFloat).reshape({2, 2}).t());
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_TRUE(at::equal(gradient->indices, Ids({3, 1})));
  EXPECT_TRUE(at::equal(gradient->values, at::tensor({0.F, 2.F, 1.F, 3.F}).reshape({2, 2})));
}

TEST(SparseGradientTest, DuplicatesAreSummedAndRowsRise) {  // C5-01
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kInt, at::kLong, at::kByte,
                                     at::kHalf, at::kBFloat16, at::kComplexFloat}) {
    SCOPED_TRACE(at::toString(dtype));
    const at::Tensor values = at::tensor({1, 2, 4, 8, 16}).to(dtype).reshape({5, 1});
    const SparseGradient sum = SumDuplicates({.indices = Ids({3, 0, 3, 2, 3}), .values = values});
    EXPECT_TRUE(at::equal(sum.indices, Ids({0, 2, 3})));
    EXPECT_TRUE(at::equal(sum.values, at::tensor({2, 8, 21}).to(dtype).reshape({3, 1})));
  }
}

TEST(SparseGradientTest, RisingIdsAreNotCopied) {
  const at::Tensor values = at::ones({2, 3});
  const SparseGradient sum = SumDuplicates({.indices = Ids({1, 4}), .values = values});
  EXPECT_EQ(sum.values.const_data_ptr(), values.const_data_ptr());
}

TEST(SparseGradientTest, RowsMayHaveAnyShape) {
  const at::Tensor values = at::ones({3, 2, 2});
  const SparseGradient sum = SumDuplicates({.indices = Ids({1, 1, 0}), .values = values});
  EXPECT_TRUE(at::equal(sum.values, at::stack({at::ones({2, 2}), at::full({2, 2}, 2.0)})));
  const auto vector = VariableOf(at::zeros({3}));
  ApplyRows(*RuleOf(Sgd{.learning_rate = 1}, vector), {2, 2}, at::tensor({1.F, 2.F}));
  EXPECT_TRUE(at::equal(store::ValueOf(*vector), at::tensor({0.F, 0.F, -3.F})));
}

// Rows do not depend on each other, so that splitting a pass changes no bit.
TEST(SparseGradientTest, SeveralThreadsGiveTheSameBits) {
  constexpr std::int64_t kRows = 3000;
  constexpr std::int64_t kWidth = 1000;
  const int threads_before = at::get_num_threads();
  at::manual_seed(4);
  const at::Tensor start = at::randn({kRows, kWidth});
  const at::Tensor ids = at::arange(0, kRows, 2, at::kLong);
  const at::Tensor values = at::randn({kRows / 2, kWidth});
  ASSERT_GE(values.numel(), kParallelElements);
  for (const OptimizerSpec& spec : {OptimizerSpec(Adam{}), OptimizerSpec(LazyAdam{})}) {
    const auto alone = VariableOf(start);
    const auto split = VariableOf(start);
    at::set_num_threads(1);
    ASSERT_TRUE(RuleOf(spec, alone)->ApplySparse({ids, values}, 0).ok());
    at::set_num_threads(3);
    ASSERT_TRUE(RuleOf(spec, split)->ApplySparse({ids, values}, 0).ok());
    EXPECT_TRUE(at::equal(store::ValueOf(*alone), store::ValueOf(*split))) << spec.rule;
  }
  at::set_num_threads(threads_before);
}

TEST(SparseGradientTest, LockingIsAskedForByTheVariableOrTheOptimizer) {
  const auto variable = VariableOf(at::zeros({2, 2}));
  ApplyRows(*RuleOf(Sgd{}, variable), {1}, at::ones({1, 2}));
  EXPECT_EQ(variable->lock_acquisitions(), 0u);
  ApplyRows(*RuleOf(Sgd{.use_locking = true}, variable), {1}, at::ones({1, 2}));
  EXPECT_EQ(variable->lock_acquisitions(), 1u);
}

TEST(SparseGradientTest, TablesWithoutElements) {
  for (const OptimizerSpec& spec : {OptimizerSpec(Adam{}), OptimizerSpec(Sgd{})}) {
    const auto no_rows = VariableOf(at::zeros({0, 3}));
    ApplyRows(*RuleOf(spec, no_rows), {}, at::zeros({0, 3}));
    const auto no_width = VariableOf(at::zeros({3, 0}));
    ApplyRows(*RuleOf(spec, no_width), {1, 2}, at::zeros({2, 0}));
    EXPECT_EQ(no_width->version(), 2u);
  }
}

}  // namespace
}  // namespace weir::optim
