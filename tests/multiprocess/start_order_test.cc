// Start order does not matter: training begins as soon as the last task is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <thread>

#include "absl/strings/str_cat.h"
#include "multiprocess/process.h"

namespace weir::testing_process {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// The three tasks of a job in the order `order`, `gap` apart.
class StartOrderTest : public testing::TestWithParam<std::array<int, 3>> {};

TEST_P(StartOrderTest, TrainingBeginsWithTheLastTask) {
  constexpr auto kGap = milliseconds(500);
  const auto addresses = FreeAddresses(3);
  const std::string cluster =
      absl::StrCat("ps=", addresses[0], ";worker=", addresses[1], ",", addresses[2]);
  const std::array<std::array<std::string, 2>, 3> tasks = {
      {{"ps", "0"}, {"worker", "0"}, {"worker", "1"}}};
  std::array<std::unique_ptr<Process>, 3> processes;
  for (const int i : GetParam()) {
    if (i != GetParam()[0])
      std::this_thread::sleep_for(kGap);  // the scenario is made of this pause
    const auto& task = tasks[static_cast<std::size_t>(i)];
    processes[static_cast<std::size_t>(i)] = std::make_unique<Process>(std::vector<std::string>{
        WEIR_BIN_DIR "/linear_regression", "--cluster", cluster, "--job", task[0], "--task",
        task[1], "--steps", "200", "--wait-for-workers", "2"});
  }
  const auto last = Clock::now();
  for (const std::size_t worker : {1u, 2u}) {
    EXPECT_EQ(processes[worker]->Wait(seconds(30)), 0)
        << processes[worker]->Output() << processes[0]->Output();
  }
  // A process takes some 0.3 s to load libtorch; 200 steps take a fraction of that. Bounds the
  // start generously on a busy machine.
  EXPECT_LT(Clock::now() - last, seconds(10));
}

INSTANTIATE_TEST_SUITE_P(AllOrders, StartOrderTest,
                         testing::Values(std::array{0, 1, 2}, std::array{0, 2, 1},
                                         std::array{1, 0, 2}, std::array{1, 2, 0},
                                         std::array{2, 0, 1}, std::array{2, 1, 0}));

}  // namespace
}  // namespace weir::testing_process
