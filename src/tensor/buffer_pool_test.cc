#include "tensor/buffer_pool.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <thread>
#include <utility>
#include <vector>

namespace weir {
namespace {

bool IsAligned(const Buffer& buffer) {
  return reinterpret_cast<std::uintptr_t>(buffer.data) % BufferPool::kAlignment == 0;
}

TEST(BufferPoolTest, LeasesWhatIsAskedFor) {
  BufferPool pool;
  for (const std::size_t bytes : {0UL, 1UL, 63UL, 64UL, 65UL, 4097UL, (8UL << 20) + 1}) {
    const Buffer buffer = pool.Lease(bytes).value();
    EXPECT_EQ(buffer.size, bytes);
    ASSERT_NE(buffer.data, nullptr);
    EXPECT_TRUE(IsAligned(buffer));
    std::memset(buffer.data, 0xff, bytes);
  }
}

TEST(BufferPoolTest, ReusesABlockOnlyWhenItsLastHolderHasGone) {
  BufferPool pool;
  Buffer first = pool.Lease(1000).value();
  std::byte* const data = first.data;
  Buffer copy = first;
  first = Buffer();
  const Buffer second = pool.Lease(1000).value();
  EXPECT_NE(second.data, data);
  copy = Buffer();
  EXPECT_EQ(pool.Lease(1000).value().data, data);
  EXPECT_EQ(pool.GetCounters().blocks_allocated, 2U);
}

TEST(BufferPoolTest, SteadySizesAreAllocatedOnce) {
  BufferPool pool;
  for (int step = 0; step < 10; ++step) {
    std::vector<Buffer> leases;
    for (const std::size_t bytes : {10UL, 100'000UL, 100'001UL, 3'000'000UL}) {
      leases.push_back(pool.Lease(bytes).value());
    }
  }
  EXPECT_EQ(pool.GetCounters().blocks_allocated, 4U);
}

RC_GTEST_PROP(BufferPoolProperty, SlackIsAnEighthAtMost, ()) {
  const auto bytes = *rc::gen::inRange<std::size_t>(512, std::size_t{1} << 30);
  // Nothing is touched: only the size that the pool asks for counts.
  alignas(BufferPool::kAlignment) std::byte block[BufferPool::kAlignment];
  std::size_t asked = 0;
  BufferPool pool({.source = {.allocate =
                                  [&](std::size_t block_bytes) {
                                    asked = block_bytes;
                                    return static_cast<void*>(block);
                                  },
                              .free = [](void*, std::size_t) {}}});
  RC_ASSERT(pool.Lease(bytes).ok());
  RC_ASSERT(asked >= bytes);
  RC_ASSERT(asked - bytes <= bytes / 8);
}

TEST(BufferPoolTest, FreesIdleBlocksBeyondItsLimitOldestFirst) {
  BufferPool pool({.idle_bytes_max = 2 * 4096});
  Buffer oldest = pool.Lease(4096).value();
  Buffer middle = pool.Lease(4096).value();
  Buffer newest = pool.Lease(1024).value();
  const std::byte* const middle_data = middle.data;
  oldest = Buffer();
  middle = Buffer();
  EXPECT_EQ(pool.GetCounters().bytes_idle, 8192U);
  newest = Buffer();
  EXPECT_EQ(pool.GetCounters().bytes_idle, 4096U + 1024U);
  EXPECT_EQ(pool.Lease(4096).value().data, middle_data);
}

TEST(BufferPoolTest, LeaseMayOutliveThePool) {
  Buffer kept;
  {
    BufferPool pool;
    kept = pool.Lease(100).value();
    const Buffer idle = pool.Lease(100).value();
  }
  std::memset(kept.data, 1, kept.size);
}

TEST(BufferPoolTest, NoMemoryIsAnErrorNotACrash) {
  bool exhausted = false;
  BlockSource source = BlockSource::Heap();
  source.allocate = [&, heap = source.allocate](std::size_t bytes) {
    return exhausted ? nullptr : heap(bytes);
  };
  BufferPool pool({.source = std::move(source)});
  {
    const Buffer idle = pool.Lease(100).value();
  }
  exhausted = true;
  EXPECT_TRUE(pool.Lease(100).ok());
  EXPECT_EQ(pool.Lease(1000).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pool.Lease(std::numeric_limits<std::size_t>::max()).status().code(),
            absl::StatusCode::kResourceExhausted);
  exhausted = false;
  EXPECT_TRUE(pool.Lease(1000).ok());
}

TEST(BufferPoolTest, IdleBlocksAreGivenUpBeforeItSaysNo) {
  std::size_t allocated = 0;
  BlockSource source = BlockSource::Heap();
  source.allocate = [&, heap = source.allocate](std::size_t bytes) -> void* {
    if (allocated + bytes > 8192) return nullptr;
    allocated += bytes;
    return heap(bytes);
  };
  source.free = [&, heap = source.free](void* block, std::size_t bytes) {
    allocated -= bytes;
    heap(block, bytes);
  };
  BufferPool pool({.source = std::move(source)});
  {
    const Buffer idle = pool.Lease(5120).value();
  }
  EXPECT_TRUE(pool.Lease(8192).ok());
}

/// Any order of leasing, copying and dropping: nobody's bytes are ever written by somebody else,
/// and the counters say what is held.
RC_GTEST_PROP(BufferPoolProperty, HeldBytesAreNobodyElses, ()) {
  BufferPool pool({.idle_bytes_max = 4096});
  std::map<int, Buffer> held;
  const auto actions = *rc::gen::container<std::vector<std::pair<int, std::uint16_t>>>(
      rc::gen::pair(rc::gen::inRange(0, 8), rc::gen::inRange<std::uint16_t>(0, 3000)));
  for (const auto& [slot, bytes] : actions) {
    if (held.contains(slot)) {
      for (std::size_t i = 0; i < held[slot].size; ++i) {
        RC_ASSERT(held[slot].data[i] == static_cast<std::byte>(slot));
      }
      held.erase(slot);
    } else {
      held[slot] = pool.Lease(bytes).value();
      std::memset(held[slot].data, slot, bytes);
    }
    RC_ASSERT(pool.GetCounters().blocks_leased == held.size());
    RC_ASSERT(pool.GetCounters().bytes_idle <= 4096U);
  }
}

TEST(BufferPoolTest, ThreadsNeverShareALease) {
  BufferPool pool({.idle_bytes_max = 64 * 1024});
  std::vector<std::thread> threads;
  for (int id = 1; id <= 4; ++id) {
    threads.emplace_back([&pool, id] {
      for (std::size_t round = 0; round < 500; ++round) {
        const Buffer buffer = pool.Lease(100 + round % 7 * 1000).value();
        std::memset(buffer.data, id, buffer.size);
        std::this_thread::yield();
        for (std::size_t i = 0; i < buffer.size; i += 50) {
          ASSERT_EQ(buffer.data[i], static_cast<std::byte>(id));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.GetCounters().blocks_leased, 0U);
  EXPECT_EQ(pool.GetCounters().bytes_leased, 0U);
}

}  // namespace
}  // namespace weir
