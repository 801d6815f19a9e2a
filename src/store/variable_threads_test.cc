// What is promised of a variable that several threads use at once.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "store/hogwild.h"
#include "store/variable.h"
#include "store/variable_testing.h"

namespace weir::store {
namespace {

constexpr std::int64_t kTwoBlocks = kBlockElements + 1000;

WEIR_HOGWILD void AddOne(float* element, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) element[i] += 1.0f;
}

absl::Status AddOneTo(Variable& variable, bool use_locking = false) {
  return variable
      .Update(use_locking,
              [&](const at::Tensor& buffer) {
                auto* data = buffer.mutable_data_ptr<float>();
                ForEachBlock(
                    0, buffer.numel(), Pass::kUpdate, variable.block_hook(),
                    [&](std::int64_t begin, std::int64_t end) { AddOne(data, begin, end); });
              })
      .status();
}

template <typename Function>
void InThreads(int count, Function&& function) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&, i] { function(i); });
  for (std::thread& thread : threads) thread.join();
}

TEST(VariableThreadsTest, InitializedExactlyOnce) {
  for (int round = 0; round < 50; ++round) {
    Initializer initializer = ConstantOf({1000}, 0);
    initializer.kind = Initializer::Kind::kUniform;
    initializer.b = 1;
    Variable variable(DefOf(std::move(initializer)));
    std::vector<at::Tensor> seen(8);
    InThreads(8, [&](int i) {
      EXPECT_TRUE(variable.Initialize().ok());
      EXPECT_TRUE(variable.initialized());
      seen[static_cast<std::size_t>(i)] = variable.Read()->tensor;
    });
    for (const at::Tensor& tensor : seen) EXPECT_TRUE(tensor.is_same(seen[0]));
  }
}

TEST(VariableThreadsTest, DefaultsTakeNoLockAndCountEveryUpdate) {
  const auto variable = FloatVariable(1000);
  InThreads(8, [&](int) {
    const at::Tensor copy = at::empty({1000});
    for (int i = 0; i < 1000; ++i) {
      EXPECT_TRUE(AddOneTo(*variable).ok());
      EXPECT_TRUE(variable->ReadInto(copy).ok());
      EXPECT_TRUE(variable->Read().ok());
    }
  });
  EXPECT_EQ(variable->lock_acquisitions(), 0u);
  EXPECT_EQ(variable->version(), 8'000u);
}

TEST(VariableThreadsTest, ACounterLosesNothing) {
  const auto counter = InitializedVariable(DefOf(ConstantOf({}, 0, at::kLong), "global_step"));
  InThreads(8, [&](int) {
    const at::Tensor one = at::ones({}, at::kLong);
    std::int64_t last = 0;
    for (int i = 0; i < 5'000; ++i) {
      EXPECT_TRUE(counter->AssignAdd(one, false).ok());
      const auto now = counter->Read()->tensor.item<std::int64_t>();
      EXPECT_GT(now, last);
      last = now;
    }
  });
  EXPECT_EQ(ValueOf(*counter).item<std::int64_t>(), 40'000);
  EXPECT_EQ(counter->version(), 40'000u);
  EXPECT_EQ(counter->lock_acquisitions(), 0u);
}

TEST(VariableThreadsTest, LockedUpdatesLoseNothing) {
  VariableDef def = DefOf(ConstantOf({100}, 0));
  def.use_locking = true;
  const auto variable = InitializedVariable(std::move(def));
  InThreads(8, [&](int) {
    for (int i = 0; i < 5'000; ++i) EXPECT_TRUE(AddOneTo(*variable).ok());
  });
  EXPECT_TRUE(at::equal(ValueOf(*variable), at::full({100}, 40'000.0f)));
  EXPECT_EQ(variable->lock_acquisitions(), 40'000u);
}

// A writer sets all elements to 1, 2, 3, ...; every read shows one of these states as a whole, and
// its version is exactly that of what is in it.
TEST(VariableThreadsTest, ConsistentReadsAreNeverMixtures) {
  VariableDef def = DefOf(ConstantOf({kTwoBlocks}, 0));
  def.consistent_reads = true;
  const auto variable = InitializedVariable(std::move(def));
  std::atomic<int> reads{0};
  std::atomic<std::uint64_t> newest{0};
  std::thread writer([&] {
    while (reads.load() < 10'000) EXPECT_TRUE(AddOneTo(*variable).ok());
  });
  InThreads(4, [&](int) {
    const at::Tensor copy = at::empty({kTwoBlocks});
    const auto* data = copy.const_data_ptr<float>();
    while (reads.fetch_add(1) < 10'000) {
      const std::uint64_t version = variable->ReadInto(copy).value();
      ASSERT_EQ(data[0], static_cast<float>(version));
      ASSERT_EQ(std::memcmp(data, data + 1, (kTwoBlocks - 1) * sizeof(float)), 0);
      newest.store(std::max(newest.load(), version));
    }
  });
  writer.join();
  EXPECT_GT(newest.load(), 0u) << "nothing was written meanwhile";
}

// Without options a read in the middle of an update sees both states, and does not wait.
TEST(VariableThreadsTest, AReadDuringAnUpdateIsTorn) {
  const auto variable = FloatVariable(kTwoBlocks);
  Snapshot torn;
  variable->SetBlockHook([&](Pass pass, std::int64_t element) {
    if (pass == Pass::kUpdate && element == kBlockElements) {
      std::thread([&] { torn = variable->ReadCopy().value(); }).join();
    }
  });
  ASSERT_TRUE(AddOneTo(*variable).ok());
  EXPECT_EQ(torn.tensor[0].item<float>(), 1.0f);
  EXPECT_EQ(torn.tensor[kTwoBlocks - 1].item<float>(), 0.0f);
  EXPECT_EQ(torn.version, 0u) << "the update was not complete";
  EXPECT_EQ(variable->lock_acquisitions(), 0u);
}

TEST(VariableThreadsTest, TheVersionIsLoadedBeforeTheFirstByte) {
  const auto variable = FloatVariable(kTwoBlocks);
  variable->SetBlockHook([&](Pass pass, std::int64_t) {
    if (pass != Pass::kRead) return;
    EXPECT_TRUE(AddOneTo(*variable).ok());
  });
  const Snapshot read = variable->ReadCopy().value();
  EXPECT_EQ(read.version, 0u);
  EXPECT_EQ(read.tensor[0].item<float>(), 0.0f);
  EXPECT_EQ(read.tensor[kTwoBlocks - 1].item<float>(), 1.0f) << "newer than the version says";
}

TEST(VariableThreadsTest, SlotsAreMadeOnceByWhoeverComesFirst) {
  const auto variable = FloatVariable(10);
  std::vector<at::Tensor> seen(8);
  InThreads(8, [&](int i) {
    seen[static_cast<std::size_t>(i)] = variable->Slot("m", ConstantOf({10}, 0)).value();
  });
  for (const at::Tensor& slot : seen) EXPECT_TRUE(slot.is_same(seen[0]));
}

}  // namespace
}  // namespace weir::store
