#include "base/gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace weir {
namespace {

TEST(GateTest, LetsNobodyInOnceClosed) {
  Gate gate;
  EXPECT_TRUE(gate.Enter());
  gate.Close();
  EXPECT_FALSE(gate.Enter());
  EXPECT_TRUE(gate.IsClosed());
  gate.Leave();
}

TEST(GateTest, ThoseInsideMayLetOthersInUntilTheLastHasLeft) {
  Gate gate;
  ASSERT_TRUE(gate.Enter());
  int called = 0;
  gate.Close([&] { ++called; });
  ASSERT_TRUE(gate.EnterUntilEmpty());
  gate.Leave();
  EXPECT_EQ(called, 0);
  gate.Leave();
  EXPECT_EQ(called, 1);
  EXPECT_FALSE(gate.EnterUntilEmpty());
}

TEST(GateTest, CallbackComesWithTheLastToLeave) {
  Gate gate;
  ASSERT_TRUE(gate.Enter());
  ASSERT_TRUE(gate.Enter());
  int called = 0;
  gate.Close([&] { ++called; });
  gate.Close([&] { ++called; });
  gate.Leave();
  EXPECT_EQ(called, 0);
  gate.Leave();
  EXPECT_EQ(called, 2);
}

TEST(GateTest, CallbackComesAtOnceWhenNobodyIsIn) {
  Gate gate;
  int called = 0;
  gate.Close([&] { ++called; });
  EXPECT_EQ(called, 1);
}

TEST(GateTest, CallbackMayDestroyTheGate) {
  auto gate = std::make_unique<Gate>();
  ASSERT_TRUE(gate->Enter());
  Gate* const entered = gate.get();
  gate->Close([&] { gate.reset(); });
  entered->Leave();
  EXPECT_EQ(gate, nullptr);
}

TEST(GateTest, WaitReturnsWhenAllHaveLeftAndMayDestroyTheGate) {
  for (int round = 0; round < 50; ++round) {
    auto gate = std::make_unique<Gate>();
    std::atomic<int> inside = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(gate->Enter());
      ++inside;
      threads.emplace_back([&inside, in = gate.get()] {
        --inside;
        in->Leave();
      });
    }
    gate->CloseAndWait();
    EXPECT_EQ(inside, 0);
    gate.reset();
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(GatePassTest, LeavesAtTheEndOfItsScope) {
  Gate gate;
  {
    const GatePass pass(gate);
    EXPECT_TRUE(pass.IsIn());
  }
  gate.CloseAndWait();
  const GatePass late(gate);
  EXPECT_FALSE(late.IsIn());
}

}  // namespace
}  // namespace weir
