#include "rendezvous/step_table.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <map>
#include <thread>
#include <vector>

namespace weir {
namespace {

constexpr std::size_t kMany = 1 << 20;

Value Bytes(std::int64_t bytes) {
  return {at::zeros({bytes}, at::kByte), 0};
}

absl::StatusOr<Value> Take(StepRendezvous& rendezvous, std::uint32_t edge) {
  absl::StatusOr<Value> taken = absl::NotFoundError("nothing there");
  rendezvous.RecvAsync(edge, [&](absl::StatusOr<Value> value) { taken = std::move(value); });
  return taken;
}

TEST(StepTableTest, KeepsWhatCameEarly) {
  StepTable table(kMany);
  ASSERT_TRUE(table.Deliver({1, 5}, 3, {at::scalar_tensor(2), 9}).ok());
  EXPECT_EQ(table.early(), 1u);
  EXPECT_EQ(table.running(), 0u);
  auto rendezvous = table.Begin({1, 5});
  ASSERT_TRUE(rendezvous.ok());
  EXPECT_EQ(table.early(), 0u);
  EXPECT_EQ(table.running(), 1u);
  EXPECT_EQ(Take(**rendezvous, 3)->version, 9u);
}

TEST(StepTableTest, DeliversToARunningStep) {
  StepTable table(/*early_bytes_max=*/0);
  auto rendezvous = *table.Begin({1, 1});
  ASSERT_TRUE(table.Deliver({1, 1}, 2, Bytes(1000)).ok());
  EXPECT_TRUE(Take(*rendezvous, 2).ok());
}

TEST(StepTableTest, DropsWhatComesLate) {
  StepTable table(kMany);
  ASSERT_TRUE(table.Begin({1, 1}).ok());
  ASSERT_TRUE(table.Begin({1, 4}).ok());
  table.End({1, 1});
  EXPECT_TRUE(table.Deliver({1, 1}, 2, Bytes(10)).ok());
  EXPECT_TRUE(table.Deliver({1, 3}, 2, Bytes(10)).ok()) << "3 < 4: it never came here, and is over";
  table.Abort({1, 1}, absl::AbortedError("late"));
  EXPECT_EQ(table.early(), 0u);
  EXPECT_EQ(table.running(), 1u);
}

TEST(StepTableTest, NumbersBeginOnceAndInOrderButOriginsAreApart) {
  StepTable table(kMany);
  ASSERT_TRUE(table.Begin({1, 0}).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(table.Begin({1, 0}).status()));
  ASSERT_TRUE(table.Begin({1, 7}).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(table.Begin({1, 6}).status()));
  table.End({1, 7});
  EXPECT_TRUE(absl::IsAlreadyExists(table.Begin({1, 7}).status()));
  EXPECT_TRUE(table.Begin({2, 0}).ok());
}

TEST(StepTableTest, DuplicatesAreRejectedEarlyAndRunning) {
  StepTable table(kMany);
  ASSERT_TRUE(table.Deliver({1, 1}, 2, Bytes(1)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(table.Deliver({1, 1}, 2, Bytes(1))));
  ASSERT_TRUE(table.Begin({1, 1}).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(table.Deliver({1, 1}, 2, Bytes(1))));
}

TEST(StepTableTest, HoldsNoMoreThanAllowedForEarlySteps) {
  constexpr std::size_t kRoom = 10 * StepTable::kEarlyOverheadBytes + 1000;
  StepTable table(kRoom);
  ASSERT_TRUE(table.Deliver({1, 1}, 1, Bytes(900)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(table.Deliver({2, 1}, 1, Bytes(kRoom))));
  EXPECT_EQ(table.early(), 1u) << "a step that nothing is held for is not remembered";
  ASSERT_TRUE(table.Begin({1, 1}).ok());
  EXPECT_TRUE(table.Deliver({2, 1}, 1, Bytes(900)).ok()) << "a step that begins makes room";
  table.AbortOrigin(2, absl::UnavailableError("gone"));
  EXPECT_TRUE(table.Deliver({3, 1}, 1, Bytes(900)).ok()) << "a master that is gone makes room";
  table.Abort({3, 1}, absl::AbortedError("x"));
  EXPECT_TRUE(table.Deliver({4, 1}, 1, Bytes(900)).ok()) << "an aborted step makes room";
}

TEST(StepTableTest, EmptyValuesCountToo) {
  StepTable table(10 * StepTable::kEarlyOverheadBytes);
  std::uint32_t edge = 0;
  while (table.Deliver({1, 1}, edge, Value()).ok()) ASSERT_LT(++edge, 100u);
  EXPECT_EQ(edge, 9u);
}

TEST(StepTableTest, ForgetsEarlyStepsThatWerePassedOver) {
  StepTable table(/*early_bytes_max=*/4 * StepTable::kEarlyOverheadBytes);
  for (std::uint64_t step = 1; step < 100; step += 2) {
    table.Abort({1, step}, absl::AbortedError("it never began"));
    ASSERT_TRUE(table.Begin({1, step + 1}).ok());
    EXPECT_EQ(table.early(), 0u);
    EXPECT_TRUE(table.CheckRoom({1, step + 2}, 4 * StepTable::kEarlyOverheadBytes).ok());
  }
}

TEST(StepTableTest, SaysBeforeItIsReceivedWhatDoesNotFit) {
  StepTable table(/*early_bytes_max=*/10'000);
  ASSERT_TRUE(table.Deliver({1, 5}, 3, Bytes(5'000)).ok());
  EXPECT_TRUE(table.CheckRoom({1, 5}, 4'000).ok());
  EXPECT_EQ(table.CheckRoom({1, 5}, 5'000).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(table.CheckRoom({1, 6}, SIZE_MAX).code(), absl::StatusCode::kResourceExhausted);
}

TEST(StepTableTest, AbortReachesARunningStep) {
  StepTable table(kMany);
  auto rendezvous = *table.Begin({1, 1});
  table.Abort({1, 1}, absl::InternalError("no"));
  EXPECT_EQ(rendezvous->status(), absl::InternalError("no"));
  EXPECT_TRUE(table.Deliver({1, 1}, 2, Bytes(1)).ok()) << "dropped, and nobody's fault";
}

TEST(StepTableTest, AbortIsRememberedForAStepThatHasNotBegun) {
  StepTable table(kMany);
  ASSERT_TRUE(table.Deliver({1, 1}, 1, Bytes(5)).ok());
  table.Abort({1, 1}, absl::InternalError("no"));
  table.Abort({1, 2}, absl::InternalError("neither"));
  EXPECT_TRUE(table.Deliver({1, 1}, 2, Bytes(5)).ok());
  EXPECT_EQ((*table.Begin({1, 1}))->status(), absl::InternalError("no"));
  EXPECT_EQ((*table.Begin({1, 2}))->status(), absl::InternalError("neither"));
  EXPECT_TRUE((*table.Begin({1, 3}))->status().ok());
}

TEST(StepTableTest, EndCancelsWhoStillWaits) {
  StepTable table(kMany);
  auto rendezvous = *table.Begin({1, 1});
  table.End({1, 1});
  EXPECT_TRUE(absl::IsCancelled(rendezvous->status()));
  EXPECT_EQ(table.running(), 0u);
  table.End({1, 1});
  table.End({9, 9});
}

TEST(StepTableTest, AbortOriginEndsItsStepsOnly) {
  StepTable table(kMany);
  auto mine = *table.Begin({1, 1});
  auto other = *table.Begin({2, 1});
  ASSERT_TRUE(table.Deliver({1, 2}, 1, Bytes(5)).ok());
  table.AbortOrigin(1, absl::UnavailableError("worker 1 is gone"));
  EXPECT_EQ(mine->status(), absl::UnavailableError("worker 1 is gone"));
  EXPECT_TRUE(other->status().ok());
  EXPECT_EQ(table.running(), 1u);
  EXPECT_EQ(table.early(), 0u);
  EXPECT_TRUE(table.Deliver({1, 3}, 1, Bytes(5)).ok());
  EXPECT_EQ(table.early(), 0u) << "nothing is kept for a master that is gone";
}

TEST(StepTableTest, AStepThatLostSomethingWhileItsMasterWasAwayDoesNotHang) {
  StepTable table(kMany);
  ASSERT_TRUE(table.Deliver({1, 2}, 1, Bytes(5)).ok());
  table.AbortOrigin(1, absl::UnavailableError("away"));
  ASSERT_TRUE(table.Deliver({1, 3}, 1, Bytes(5)).ok());
  table.Abort({1, 4}, absl::AbortedError("x"));
  for (std::uint64_t step : {1, 2, 3, 4}) {
    EXPECT_EQ((*table.Begin({1, step}))->status(), absl::UnavailableError("away")) << step;
  }
  EXPECT_TRUE((*table.Begin({1, 5}))->status().ok());
  ASSERT_TRUE(table.Deliver({1, 6}, 1, Bytes(5)).ok());
  EXPECT_EQ(table.early(), 1u) << "it is back";
}

TEST(StepTableTest, AbortAllEndsEveryStepNowAndLater) {
  StepTable table(kMany);
  auto one = *table.Begin({1, 1});
  ASSERT_TRUE(table.Deliver({2, 1}, 1, Bytes(5)).ok());
  table.AbortAll(absl::CancelledError("closing"));
  EXPECT_TRUE(absl::IsCancelled(one->status()));
  EXPECT_EQ(table.early(), 0u);
  EXPECT_TRUE(table.Deliver({3, 1}, 1, Bytes(5)).ok());
  EXPECT_EQ(table.early(), 0u);
  EXPECT_TRUE(absl::IsCancelled((*table.Begin({3, 1}))->status()));
}

// Against a plain model: values come in any order relative to their steps; what was delivered
// before or while the step ran is there, and what came after it leaves nothing behind.
RC_GTEST_PROP(StepTableTest, FollowsTheModel, ()) {
  StepTable table(kMany);
  std::map<std::uint64_t, std::shared_ptr<StepRendezvous>> running;
  std::map<std::uint64_t, std::uint32_t> delivered;  // step -> number of values, edges from 0
  std::uint64_t next = 0;
  const int actions = *rc::gen::inRange(0, 60);
  for (int i = 0; i < actions; ++i) {
    const std::uint64_t step = *rc::gen::inRange<std::uint64_t>(0, 12);
    switch (*rc::gen::inRange(0, 3)) {
      case 0: {
        auto begun = table.Begin({1, step});
        RC_ASSERT(begun.ok() == (step >= next));
        if (!begun.ok()) break;
        running[step] = *begun;
        next = step + 1;
        break;
      }
      case 1: {
        const bool kept = step >= next || running.contains(step);
        RC_ASSERT(table.Deliver({1, step}, delivered[step], Value()).ok());
        if (kept) ++delivered[step];
        break;
      }
      case 2:
        table.End({1, step});
        running.erase(step);
        break;
    }
    RC_ASSERT(table.running() == running.size());
  }
  for (auto& [step, rendezvous] : running) RC_ASSERT(rendezvous->held() == delivered[step]);
}

TEST(StepTableTest, ThreadsRace) {
  StepTable table(kMany);
  std::atomic<int> callbacks = 0;
  std::thread deliverer([&] {
    for (std::uint64_t step = 0; step < 500; ++step) {
      table.Deliver({1, step}, 1, Bytes(8)).IgnoreError();
    }
  });
  std::thread aborter([&] {
    for (std::uint64_t step = 0; step < 500; step += 3) {
      table.Abort({1, step}, absl::AbortedError("race"));
    }
  });
  for (std::uint64_t step = 0; step < 500; ++step) {
    auto rendezvous = *table.Begin({1, step});
    rendezvous->RecvAsync(1, [&](const absl::StatusOr<Value>&) { ++callbacks; });
    table.End({1, step});
  }
  deliverer.join();
  aborter.join();
  EXPECT_EQ(callbacks, 500);
  EXPECT_EQ(table.running(), 0u);
}

}  // namespace
}  // namespace weir
