#include "base/strand.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <string>
#include <vector>

#include "base/sim_scheduler.h"

namespace weir {
namespace {

TEST(StrandTest, KeepsOrderAndNeverOverlapsOnManyThreads) {
  const auto scheduler = NewPoolScheduler(4);
  constexpr int kAll = 2000;
  std::vector<int> order;  // unguarded: the strand alone protects it
  std::latch ran(kAll);
  Strand strand(scheduler.get());
  for (int i = 0; i < kAll; ++i) {
    strand.Post([&, i] {
      order.push_back(i);
      ran.count_down();
    });
  }
  ran.wait();
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(StrandTest, WaitingWorkOutlivesTheStrand) {
  SimScheduler scheduler(1);
  int ran = 0;
  {
    Strand strand(&scheduler);
    strand.Post([&] { ++ran; });
    strand.Post([&] { ++ran; });
    EXPECT_EQ(ran, 0);
  }
  scheduler.RunUntilIdle();
  EXPECT_EQ(ran, 2);
}

TEST(StrandTest, OthersMayRunInBetween) {
  bool interleaved = false;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SimScheduler scheduler(seed);
    Strand a(&scheduler);
    Strand b(&scheduler);
    std::string order;
    for (int i = 0; i < 5; ++i) {
      a.Post([&] { order += 'a'; });
      b.Post([&] { order += 'b'; });
    }
    scheduler.RunUntilIdle();
    interleaved |= order != "aaaaabbbbb" && order != "bbbbbaaaaa";
  }
  EXPECT_TRUE(interleaved);
}

}  // namespace
}  // namespace weir
