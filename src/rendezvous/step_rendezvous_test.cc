#include "rendezvous/step_rendezvous.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace weir {
namespace {

Value Scalar(double value, std::uint64_t version = 0) {
  return {at::scalar_tensor(value), version};
}

/// What a Recv got, and how often it was called.
struct Received {
  int calls = 0;
  absl::StatusOr<Value> result = absl::UnknownError("not called");

  StepRendezvous::Callback Callback() {
    return [this](absl::StatusOr<Value> got) {
      ++calls;
      result = std::move(got);
    };
  }
};

TEST(StepRendezvousTest, SendThenRecvHandsTheValueOver) {
  StepRendezvous rendezvous;
  ASSERT_TRUE(rendezvous.Put(1, Scalar(3, 7)).ok());
  EXPECT_EQ(rendezvous.held(), 1u);
  Received received;
  rendezvous.RecvAsync(1, received.Callback());
  ASSERT_EQ(received.calls, 1);
  EXPECT_EQ(received.result->tensor.item<double>(), 3);
  EXPECT_EQ(received.result->version, 7u);
  EXPECT_EQ(rendezvous.held(), 0u);
}

TEST(StepRendezvousTest, RecvThenSendHandsTheValueOver) {
  StepRendezvous rendezvous;
  Received received;
  rendezvous.RecvAsync(1, received.Callback());
  EXPECT_EQ(received.calls, 0);
  ASSERT_TRUE(rendezvous.Put(1, Scalar(3, 7)).ok());
  ASSERT_EQ(received.calls, 1);
  EXPECT_EQ(received.result->tensor.item<double>(), 3);
  EXPECT_EQ(received.result->version, 7u);
}

TEST(StepRendezvousTest, ValueIsNotCopiedAndNotKept) {
  StepRendezvous rendezvous;
  Value value = Scalar(1);
  const void* data = value.tensor.data_ptr();
  Received received;
  rendezvous.RecvAsync(1, received.Callback());
  ASSERT_TRUE(rendezvous.Put(1, std::move(value)).ok());
  EXPECT_EQ(received.result->tensor.data_ptr(), data);
  EXPECT_EQ(received.result->tensor.use_count(), 1u);
}

TEST(StepRendezvousTest, AbsentValuesPass) {
  StepRendezvous rendezvous;
  ASSERT_TRUE(rendezvous.Put(1, Value{{}, 5}).ok());
  Received received;
  rendezvous.RecvAsync(1, received.Callback());
  ASSERT_TRUE(received.result.ok());
  EXPECT_FALSE(received.result->tensor.defined());
  EXPECT_EQ(received.result->version, 5u);
}

TEST(StepRendezvousTest, EdgesDoNotMix) {
  StepRendezvous rendezvous;
  std::vector<Received> received(100);
  std::vector<std::uint32_t> order(100);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  for (std::uint32_t edge : order) rendezvous.RecvAsync(edge, received[edge].Callback());
  std::shuffle(order.begin(), order.end(), std::mt19937(2));
  for (std::uint32_t edge : order) ASSERT_TRUE(rendezvous.Put(edge, Scalar(edge)).ok());
  for (std::uint32_t edge : order) {
    EXPECT_EQ(received[edge].calls, 1);
    EXPECT_EQ(received[edge].result->tensor.item<double>(), edge);
  }
}

TEST(StepRendezvousTest, SecondPutAlreadyExistsBeforeAndAfterTheRecv) {
  StepRendezvous rendezvous;
  ASSERT_TRUE(rendezvous.Put(4, Scalar(1)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(rendezvous.Put(4, Scalar(2))));
  Received received;
  rendezvous.RecvAsync(4, received.Callback());
  EXPECT_EQ(received.result->tensor.item<double>(), 1);
  EXPECT_TRUE(absl::IsAlreadyExists(rendezvous.Put(4, Scalar(3))));
}

TEST(StepRendezvousTest, SecondRecvAlreadyExistsAndTheFirstStands) {
  StepRendezvous rendezvous;
  Received first, second, third;
  rendezvous.RecvAsync(4, first.Callback());
  rendezvous.RecvAsync(4, second.Callback());
  EXPECT_TRUE(absl::IsAlreadyExists(second.result.status()));
  ASSERT_TRUE(rendezvous.Put(4, Scalar(1)).ok());
  EXPECT_EQ(first.result->tensor.item<double>(), 1);
  rendezvous.RecvAsync(4, third.Callback());
  EXPECT_TRUE(absl::IsAlreadyExists(third.result.status()));
}

TEST(StepRendezvousTest, AbortWakesWaiters) {
  StepRendezvous rendezvous;
  Received received;
  rendezvous.RecvAsync(1, received.Callback());
  rendezvous.Abort(absl::UnavailableError("peer is gone"));
  EXPECT_EQ(received.calls, 1);
  EXPECT_EQ(received.result.status(), absl::UnavailableError("peer is gone"));
}

TEST(StepRendezvousTest, AbortThenSendAndRecvGetTheFirstReason) {
  StepRendezvous rendezvous;
  ASSERT_TRUE(rendezvous.Put(1, Scalar(1)).ok());
  rendezvous.Abort(absl::AbortedError("first"));
  rendezvous.Abort(absl::AbortedError("second"));
  EXPECT_EQ(rendezvous.held(), 0u);
  EXPECT_EQ(rendezvous.status(), absl::AbortedError("first"));
  EXPECT_EQ(rendezvous.Put(2, Scalar(1)), absl::AbortedError("first"));
  Received of_held, of_new;
  rendezvous.RecvAsync(1, of_held.Callback());
  rendezvous.RecvAsync(3, of_new.Callback());
  EXPECT_EQ(of_held.result.status(), absl::AbortedError("first"));
  EXPECT_EQ(of_new.result.status(), absl::AbortedError("first"));
}

TEST(StepRendezvousTest, DestructionCancelsWaiters) {
  Received received;
  {
    StepRendezvous rendezvous;
    rendezvous.RecvAsync(1, received.Callback());
  }
  EXPECT_EQ(received.calls, 1);
  EXPECT_TRUE(absl::IsCancelled(received.result.status()));
}

TEST(StepRendezvousTest, AbortListenersAreCalledOnceBeforeOrAfter) {
  StepRendezvous rendezvous;
  int before = 0, after = 0;
  rendezvous.NotifyAbort([&] { ++before; });
  EXPECT_EQ(before, 0);
  rendezvous.Abort(absl::AbortedError("x"));
  EXPECT_EQ(before, 1);
  rendezvous.NotifyAbort([&] { ++after; });
  EXPECT_EQ(after, 1);
  rendezvous.Abort(absl::AbortedError("y"));
  EXPECT_EQ(before, 1);
}

TEST(StepRendezvousTest, CallbacksMayUseTheRendezvous) {
  StepRendezvous rendezvous;
  Received second;
  rendezvous.RecvAsync(1, [&](absl::StatusOr<Value> value) {
    ASSERT_TRUE(rendezvous.Put(2, *std::move(value)).ok());
  });
  rendezvous.RecvAsync(2, second.Callback());
  ASSERT_TRUE(rendezvous.Put(1, Scalar(9)).ok());
  EXPECT_EQ(second.result->tensor.item<double>(), 9);
  rendezvous.RecvAsync(3, [&](absl::StatusOr<Value> value) {
    rendezvous.Abort(absl::InternalError("derived"));
    EXPECT_TRUE(absl::IsAborted(value.status()));
  });
  rendezvous.Abort(absl::AbortedError("root"));
}

// Whatever the order of puts, receives and an abort: every callback is called once, with its value
// if both sides came before the abort, else with the reason.
RC_GTEST_PROP(StepRendezvousTest, EveryCallbackIsCalledOnce, ()) {
  const int edges = *rc::gen::inRange(1, 20);
  std::vector<std::uint32_t> actions;  // edge * 2 + (0: put, 1: receive)
  for (int i = 0; i < 2 * edges; ++i) actions.push_back(static_cast<std::uint32_t>(i));
  std::shuffle(actions.begin(), actions.end(), std::mt19937(*rc::gen::arbitrary<unsigned>()));
  const int abort_at = *rc::gen::inRange(0, 2 * edges + 1);
  std::vector<Received> received(static_cast<std::size_t>(edges));
  std::vector<int> sides(static_cast<std::size_t>(edges), 0);
  {
    StepRendezvous rendezvous;
    for (int i = 0; i <= 2 * edges; ++i) {
      if (i == abort_at) rendezvous.Abort(absl::AbortedError("now"));
      if (i == 2 * edges) break;
      const std::uint32_t edge = actions[static_cast<std::size_t>(i)] / 2;
      if (i < abort_at) ++sides[edge];
      if (actions[static_cast<std::size_t>(i)] % 2 == 0) {
        RC_ASSERT(rendezvous.Put(edge, Scalar(edge)).ok() == (i < abort_at));
      } else {
        rendezvous.RecvAsync(edge, received[edge].Callback());
      }
    }
  }
  for (std::size_t edge = 0; edge < received.size(); ++edge) {
    RC_ASSERT(received[edge].calls == 1);
    RC_ASSERT(received[edge].result.ok() == (sides[edge] == 2));
  }
}

TEST(StepRendezvousTest, ThreadsRaceAndEveryCallbackIsCalledOnce) {
  constexpr std::uint32_t kEdges = 64;
  for (int round = 0; round < 30; ++round) {
    auto rendezvous = std::make_shared<StepRendezvous>();
    std::vector<std::atomic<int>> calls(kEdges);
    std::thread putter([&] {
      for (std::uint32_t edge = 0; edge < kEdges; ++edge) {
        rendezvous->Put(edge, Scalar(edge)).IgnoreError();
      }
    });
    std::thread receiver([&] {
      for (std::uint32_t edge = kEdges; edge-- > 0;) {
        rendezvous->RecvAsync(edge,
                              [&calls, edge](const absl::StatusOr<Value>&) { ++calls[edge]; });
      }
    });
    std::thread aborter([&] {
      if (round % 2 == 0) rendezvous->Abort(absl::AbortedError("race"));
    });
    putter.join();
    receiver.join();
    aborter.join();
    rendezvous.reset();
    for (const auto& count : calls) EXPECT_EQ(count, 1);
  }
}

}  // namespace
}  // namespace weir
