#include "store/variable_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "store/variable_testing.h"

namespace weir::store {
namespace {

using testing::HasSubstr;

VariableDef Def(const std::string& container, const std::string& name) {
  VariableDef def = DefOf(ConstantOf({2, 3}, 0), name);
  def.container = container;
  return def;
}

TEST(VariableStoreTest, SharesAVariableUnderItsName) {
  VariableStore store;
  const auto variable = store.Ensure(Def("ps", "w")).value();
  EXPECT_FALSE(variable->initialized());
  EXPECT_EQ(store.Ensure(Def("ps", "w")).value(), variable);
  EXPECT_EQ(store.Find("ps", "w").value(), variable);
  EXPECT_NE(store.Ensure(Def("other", "w")).value(), variable);
  EXPECT_EQ(store.All().size(), 2u);
}

TEST(VariableStoreTest, OptionsOfTheFirstAskerStay) {
  VariableStore store;
  VariableDef locking = Def("ps", "w");
  locking.use_locking = true;
  ASSERT_TRUE(store.Ensure(locking).ok());
  EXPECT_TRUE(store.Ensure(Def("ps", "w")).value()->def().use_locking);
}

TEST(VariableStoreTest, AGuaranteeThatAVariableLacksIsRefused) {
  VariableStore store;
  ASSERT_TRUE(store.Ensure(Def("ps", "w")).ok());
  VariableDef locking = Def("ps", "w");
  locking.use_locking = true;
  VariableDef consistent = Def("ps", "w");
  consistent.consistent_reads = true;
  for (const auto& [def, option] :
       {std::pair{locking, "use_locking"}, std::pair{consistent, "consistent_reads"}}) {
    const absl::Status status = store.Ensure(def).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(option));
    EXPECT_THAT(std::string(status.message()), HasSubstr("\"w\""));
  }
}

TEST(VariableStoreTest, AskersMustAgreeOnShapeAndDtype) {
  VariableStore store;
  ASSERT_TRUE(store.Ensure(Def("ps", "w")).ok());
  VariableDef shape = Def("ps", "w");
  shape.initializer.shape = {6};
  VariableDef dtype = Def("ps", "w");
  dtype.initializer.dtype = at::kDouble;
  for (const VariableDef& def : {shape, dtype}) {
    const absl::Status status = store.Ensure(def).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("float32 [2, 3]"));
  }
  EXPECT_THAT(std::string(store.Ensure(dtype).status().message()), HasSubstr("float64 [2, 3]"));
}

TEST(VariableStoreTest, RefusesWhatCanBeNoVariable) {
  VariableStore store;
  VariableDef negative = Def("ps", "w");
  negative.initializer.shape = {-1};
  VariableDef huge = Def("ps", "w");
  huge.initializer.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  VariableDef untyped = Def("ps", "w");
  untyped.initializer.dtype = at::ScalarType::Undefined;
  for (const VariableDef& def : {negative, huge, untyped, Def("ps", "")}) {
    EXPECT_EQ(store.Ensure(def).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(store.All().empty());
}

TEST(VariableStoreTest, NotFoundSaysWhatIsThere) {
  VariableStore store;
  const absl::Status empty = store.Find("ps", "w").status();
  EXPECT_EQ(empty.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(empty.message()),
            "no variable \"w\" in container \"ps\", which holds nothing");

  ASSERT_TRUE(store.Ensure(Def("other", "hidden")).ok());
  for (int i = 10; i < 25; ++i) ASSERT_TRUE(store.Ensure(Def("ps", absl::StrCat("v", i))).ok());
  const std::string message(store.Find("ps", "w").status().message());
  EXPECT_THAT(message, HasSubstr("v10, v11"));
  EXPECT_THAT(message, HasSubstr("and 5 more"));
  EXPECT_THAT(message, testing::Not(HasSubstr("hidden")));
}

TEST(VariableStoreTest, ResetForgetsContainersButNotWhatIsHeld) {
  VariableStore store;
  const auto held = store.Ensure(Def("a", "w")).value();
  ASSERT_TRUE(held->Initialize().ok());
  ASSERT_TRUE(store.Ensure(Def("b", "w")).ok());
  store.Reset({"a", "unknown"});
  EXPECT_EQ(store.Find("a", "w").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store.Find("b", "w").ok());
  EXPECT_TRUE(held->Read().ok());
  EXPECT_NE(store.Ensure(Def("a", "w")).value(), held);
}

TEST(VariableStoreTest, ThreadsGetTheSameVariable) {
  VariableStore store;
  std::vector<std::shared_ptr<Variable>> seen(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    threads.emplace_back([&, i] { seen[i] = store.Ensure(Def("ps", "w")).value(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& variable : seen) EXPECT_EQ(variable, seen[0]);
}

}  // namespace
}  // namespace weir::store
