#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "store/variable_testing.h"

namespace weir::store {
namespace {

using testing::AllOf;
using testing::HasSubstr;

at::Tensor Ids(std::vector<std::int64_t> ids) {
  return at::tensor(ids, at::kLong);
}

std::shared_ptr<Variable> Table(VariableDef def = DefOf(ConstantOf({4, 2}, 0))) {
  auto variable = InitializedVariable(std::move(def));
  EXPECT_TRUE(variable->Assign(at::arange(8, at::kFloat).reshape({4, 2})).ok());
  return variable;
}

TEST(VariableRowsTest, RowsAreReadInTheOrderAskedForAlsoSeveralTimes) {
  const auto table = Table();
  const auto rows = table->ReadRows(Ids({3, 0, 3}));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE(at::equal(rows->tensor, at::tensor({6.F, 7.F, 0.F, 1.F, 6.F, 7.F}).reshape({3, 2})));
  EXPECT_EQ(rows->version, 1u);
  EXPECT_EQ(table->ReadRows(Ids({})).value().tensor.sizes(), (std::vector<std::int64_t>{0, 2}));
}

TEST(VariableRowsTest, ScatterAddsUpAndUpdateKeepsTheLast) {
  const auto table = Table();
  EXPECT_EQ(table->ScatterAdd(Ids({1, 1}), at::ones({2, 2}), false).value(), 1u);
  EXPECT_TRUE(at::equal(ValueOf(*table)[1], at::tensor({4.F, 5.F})));
  const at::Tensor values = at::tensor({10.F, 20.F, 30.F, 40.F}).reshape({2, 2});
  EXPECT_EQ(table->ScatterUpdate(Ids({2, 2}), values, false).value(), 2u);
  EXPECT_TRUE(at::equal(ValueOf(*table)[2], at::tensor({30.F, 40.F})));
  EXPECT_TRUE(at::equal(ValueOf(*table)[3], at::tensor({6.F, 7.F})));
  EXPECT_EQ(table->lock_acquisitions(), 0u + 1u);  // of the Assign that made the table
}

// What is read in place is the buffer that it is added to.
TEST(VariableRowsTest, ValuesMayBeRowsOfTheVariableItself) {
  const auto table = Table();
  const at::Tensor own = table->Read().value().tensor;
  ASSERT_TRUE(table->ScatterAdd(Ids({0, 1, 2, 3}), own, false).ok());
  EXPECT_TRUE(at::equal(ValueOf(*table), at::arange(0, 16, 2, at::kFloat).reshape({4, 2})));
  ASSERT_TRUE(table->ScatterAdd(Ids({0, 0}), own.slice(0, 2, 4), false).ok());
  EXPECT_TRUE(at::equal(ValueOf(*table)[0], at::tensor({0.F + 8 + 12, 2.F + 10 + 14})));
}

TEST(VariableRowsTest, BoolsAreNotAddedButOverwritten) {
  const auto table = InitializedVariable(DefOf(ConstantOf({4, 2}, 0, at::kBool)));
  const at::Tensor values = at::ones({1, 2}, at::kBool);
  const absl::Status status = table->ScatterAdd(Ids({1}), values, false).status();
  EXPECT_EQ(status, table->AssignAdd(at::ones({4, 2}, at::kBool), false).status());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("\"w\""), HasSubstr("bool")));
  EXPECT_EQ(table->version(), 0u);
  ASSERT_TRUE(table->ScatterUpdate(Ids({1}), values, false).ok());
  EXPECT_TRUE(ValueOf(*table)[1].all().item<bool>());
}

TEST(VariableRowsTest, AnIdThatIsNoRowNamesItselfTheVariableAndItsRows) {
  const auto table = Table();
  const at::Tensor bad = Ids({0, 4});
  for (const absl::Status& status :
       {table->ReadRows(bad).status(), table->ScatterAdd(bad, at::ones({2, 2}), false).status(),
        table->ScatterUpdate(Ids({-1, 0}), at::ones({2, 2}), false).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("out of range"), HasSubstr("\"w\""), HasSubstr("4 rows")));
  }
  EXPECT_EQ(table->version(), 1u);
}

TEST(VariableRowsTest, RefusesOtherShapesScalarsAndWhatIsNotInitialised) {
  const auto table = Table();
  EXPECT_FALSE(table->ScatterAdd(Ids({0}), at::ones({2, 2}), false).ok());
  EXPECT_FALSE(table->ScatterUpdate(Ids({0}), at::ones({1, 2}, at::kDouble), false).ok());
  EXPECT_THAT(std::string(table->ReadRows(at::zeros({2, 1})).status().message()),
              AllOf(HasSubstr("\"w\": the ids are float32 [2, 1]"), HasSubstr("int64 or int32")));
  EXPECT_FALSE(table->ReadRows(at::Tensor()).ok());
  EXPECT_FALSE(InitializedVariable(DefOf(ConstantOf({}, 0)))->ReadRows(Ids({0})).ok());
  const Variable unset(DefOf(ConstantOf({4, 2}, 0)));
  EXPECT_EQ(unset.ReadRows(Ids({0})).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(VariableRowsTest, ConsistentReadsTakeTheLockAndPlainOnesDoNot) {
  VariableDef def = DefOf(ConstantOf({4, 2}, 0));
  def.consistent_reads = true;
  const auto consistent = InitializedVariable(def);
  ASSERT_TRUE(consistent->ReadRows(Ids({1})).ok());
  EXPECT_EQ(consistent->lock_acquisitions(), 1u);
  const auto plain = InitializedVariable(DefOf(ConstantOf({4, 2}, 0)));
  ASSERT_TRUE(plain->ReadRows(Ids({1})).ok());
  EXPECT_EQ(plain->lock_acquisitions(), 0u);
}

}  // namespace
}  // namespace weir::store
