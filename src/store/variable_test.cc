#include "store/variable.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/variable_testing.h"

namespace weir::store {
namespace {

Initializer ValueOfTensor(at::Tensor value) {
  Initializer initializer = ConstantOf(value.sizes().vec(), 0, value.scalar_type());
  initializer.kind = Initializer::Kind::kValue;
  initializer.value = std::move(value);
  return initializer;
}

TEST(VariableTest, IsUninitializedUntilItIsInitialized) {
  Variable variable(DefOf(ConstantOf({2}, 3)));
  EXPECT_FALSE(variable.initialized());
  for (const absl::Status& status :
       {variable.Read().status(), variable.ReadCopy().status(),
        variable.ReadInto(at::empty({2})).status(),
        variable.AssignAdd(at::ones({2}), false).status(),
        variable.Update(false, [](const at::Tensor&) { FAIL(); }).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(std::string(status.message()), "Attempting to use uninitialized value w");
  }
  ASSERT_TRUE(variable.Initialize().ok());
  EXPECT_TRUE(variable.initialized());
  EXPECT_TRUE(at::equal(ValueOf(variable), at::full({2}, 3.0f)));
  EXPECT_EQ(variable.version(), 0u);
  EXPECT_EQ(variable.bytes(), 8u);
}

TEST(VariableTest, ASecondInitializeChangesNothing) {
  const auto variable = FloatVariable(2, 1);
  ASSERT_TRUE(variable->Assign(at::full({2}, 5.0f)).ok());
  ASSERT_TRUE(variable->Initialize().ok());
  EXPECT_TRUE(at::equal(ValueOf(*variable), at::full({2}, 5.0f)));
}

TEST(VariableTest, AnInitializerThatCannotRunLeavesItUninitialized) {
  VariableDef def = DefOf(ValueOfTensor(at::ones({3})));
  def.initializer.shape = {4};
  Variable variable(std::move(def));
  EXPECT_EQ(variable.Initialize().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(variable.initialized());
}

TEST(VariableTest, AValueIsCopiedAndThenLetGo) {
  at::Tensor value = at::ones({3});
  const auto variable = InitializedVariable(DefOf(ValueOfTensor(value)));
  EXPECT_EQ(value.use_count(), 1u);
  value.fill_(9);
  EXPECT_TRUE(at::equal(ValueOf(*variable), at::ones({3})));
}

TEST(VariableTest, ReadIsTheBufferAndReadCopyIsNot) {
  const auto variable = FloatVariable(4);
  const at::Tensor buffer = variable->Read()->tensor;
  const at::Tensor copy = variable->ReadCopy()->tensor;
  ASSERT_TRUE(variable->Update(false, [](const at::Tensor& w) { w.fill_(2); }).ok());
  EXPECT_TRUE(at::equal(buffer, at::full({4}, 2.0f)));
  EXPECT_TRUE(at::equal(copy, at::zeros({4})));
  EXPECT_EQ(variable->Read()->version, 1u);
}

TEST(VariableTest, ConsistentReadsAreCopies) {
  VariableDef def = DefOf(ConstantOf({4}, 0));
  def.consistent_reads = true;
  const auto variable = InitializedVariable(std::move(def));
  const at::Tensor read = variable->Read()->tensor;
  ASSERT_TRUE(variable->Update(false, [](const at::Tensor& w) { w.fill_(2); }).ok());
  EXPECT_TRUE(at::equal(read, at::zeros({4})));
}

TEST(VariableTest, ReadIntoFillsWhatTheCallerHas) {
  const auto variable = FloatVariable(4, 7);
  const at::Tensor to = at::zeros({4});
  EXPECT_EQ(variable->ReadInto(to).value(), 0u);
  EXPECT_TRUE(at::equal(to, at::full({4}, 7.0f)));
  for (const at::Tensor& bad : {at::zeros({5}), at::zeros({4}, at::kDouble),
                                at::zeros({8}).slice(0, 0, 8, 2), at::Tensor()}) {
    EXPECT_EQ(variable->ReadInto(bad).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(VariableTest, UpdateReturnsTheVersionBeforeIt) {
  const auto variable = FloatVariable(1);
  for (std::uint64_t version = 0; version < 5; ++version) {
    EXPECT_EQ(variable->Update(false, [](const at::Tensor&) {}).value(), version);
  }
  EXPECT_EQ(variable->version(), 5u);
}

TEST(VariableTest, AssignOverwritesInPlace) {
  const auto variable = FloatVariable(3);
  const at::Tensor buffer = variable->Read()->tensor;
  ASSERT_TRUE(variable->Assign(at::arange(6, at::kFloat).slice(0, 0, 6, 2)).ok());
  EXPECT_TRUE(at::equal(buffer, at::tensor({0.0f, 2.0f, 4.0f})));
  EXPECT_EQ(variable->version(), 1u);
  ASSERT_TRUE(variable->Assign(buffer).ok()) << "to itself";
  EXPECT_TRUE(at::equal(buffer, at::tensor({0.0f, 2.0f, 4.0f})));
  const absl::Status status = variable->Assign(at::ones({2}));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("\"w\""));
}

TEST(VariableTest, AssignInitializes) {
  Variable variable(DefOf(ConstantOf({2}, 1)));
  at::Tensor value = at::full({2}, 4.0f);
  ASSERT_TRUE(variable.Assign(value).ok());
  EXPECT_TRUE(variable.initialized());
  EXPECT_EQ(variable.version(), 1u);
  value.fill_(9);
  EXPECT_TRUE(at::equal(ValueOf(variable), at::full({2}, 4.0f)));
}

TEST(VariableTest, AssignAddAddsToAnyNumericDtype) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kInt, at::kLong, at::kByte,
                                     at::kHalf, at::kBFloat16, at::kComplexFloat}) {
    const auto variable = InitializedVariable(DefOf(ConstantOf({3}, 1, dtype)));
    const at::Tensor two = at::full({3}, 2, at::TensorOptions(dtype));
    EXPECT_EQ(variable->AssignAdd(two, false).value(), 0u) << at::toString(dtype);
    EXPECT_TRUE(at::equal(ValueOf(*variable), at::full({3}, 3, at::TensorOptions(dtype))));
    EXPECT_EQ(variable->version(), 1u);
  }
  const auto flags = InitializedVariable(DefOf(ConstantOf({3}, 1, at::kBool)));
  EXPECT_EQ(flags->AssignAdd(at::ones({3}, at::kBool), false).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FloatVariable(3)->AssignAdd(at::ones({2}), false).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Autograd compares version counters of what it saved: an update of the store between a forward and
// its backward is the normal case here, not an error.
TEST(VariableTest, UpdatesAreInvisibleToAutograd) {
  const auto variable = FloatVariable(3, 2);
  const at::Tensor w = variable->Read()->tensor.detach().set_requires_grad(true);
  const at::Tensor loss = (w * w).sum();
  ASSERT_TRUE(variable->AssignAdd(at::ones({3}), false).ok());
  ASSERT_TRUE(variable->Assign(at::ones({3})).ok());
  EXPECT_NO_THROW(loss.backward());
}

TEST(VariableTest, ACounterIsReadAsACopy) {
  for (const at::ScalarType dtype : {at::kLong, at::kInt}) {
    const auto counter = InitializedVariable(DefOf(ConstantOf({}, 5, dtype)));
    const Snapshot before = counter->Read().value();
    EXPECT_EQ(counter->AssignAdd(at::ones({}, dtype), false).value(), 0u);
    EXPECT_EQ(before.tensor.item<std::int64_t>(), 5);
    EXPECT_EQ(counter->Read()->tensor.item<std::int64_t>(), 6);
    ASSERT_TRUE(counter->Assign(at::full({}, -3, at::TensorOptions(dtype))).ok());
    EXPECT_EQ(ValueOf(*counter).item<std::int64_t>(), -3);
  }
}

TEST(VariableTest, TicketsGoOnFromTheValueOfACounter) {
  const auto counter = InitializedVariable(DefOf(ConstantOf({}, 5, at::kLong)));
  EXPECT_EQ(counter->tickets().completed(), 5u);
  ASSERT_TRUE(counter->Assign(at::scalar_tensor(9, at::kLong)).ok());
  EXPECT_EQ(counter->tickets().completed(), 9u);
}

TEST(VariableTest, SlotsAreMadeOnceAndNamed) {
  const auto variable = FloatVariable(3);
  const at::Tensor slot = variable->Slot("Adam/m", ConstantOf({3}, 0)).value();
  slot.fill_(4);
  EXPECT_TRUE(variable->Slot("Adam/m", ConstantOf({3}, 0))->is_same(slot));
  EXPECT_EQ(variable->Slot("Adam/m", ConstantOf({2}, 0)).status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(variable->Slot("Adam/v", ConstantOf({3}, 0)).ok());
  EXPECT_THAT(variable->slots(),
              testing::ElementsAre(testing::Key("Adam/m"), testing::Key("Adam/v")));
}

TEST(VariableTest, OnlyOptionsTakeLocks) {
  const auto use = [](const std::shared_ptr<Variable>& variable, bool use_locking) {
    EXPECT_TRUE(variable->Update(use_locking, [](const at::Tensor&) {}).ok());
    EXPECT_TRUE(variable->Read().ok());
    EXPECT_TRUE(variable->ReadCopy().ok());
    return variable->lock_acquisitions();
  };
  EXPECT_EQ(use(FloatVariable(3), false), 0u);
  EXPECT_EQ(use(FloatVariable(3), true), 1u);
  VariableDef locking = DefOf(ConstantOf({3}, 0));
  locking.use_locking = true;
  EXPECT_EQ(use(InitializedVariable(locking), false), 1u) << "reads still take none";
  VariableDef consistent = DefOf(ConstantOf({3}, 0));
  consistent.consistent_reads = true;
  EXPECT_EQ(use(InitializedVariable(consistent), false), 3u);
}

}  // namespace
}  // namespace weir::store
