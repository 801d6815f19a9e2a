// Start order does not matter: training begins as soon as the last task is there.
#include <gtest/gtest.h>

#include <array>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "multiprocess/process.h"

namespace weir::testing_process {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

using Order = std::array<std::size_t, 3>;

constexpr milliseconds kGap{2000};

struct Times {
  bool trained = false;
  double up = 0;     // the last process's own start, until its ports are open
  double begin = 0;  // from then until both workers say that training begins
};

double Seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// Runs one job of one ps and two workers (0, 1 and 2 of `order`), started kGap apart.
Times RunInOrder(const Order& order) {
  const auto addresses = FreeAddresses(3);
  const std::string cluster =
      absl::StrCat("ps=", addresses[0], ";worker=", addresses[1], ",", addresses[2]);
  const std::array<std::array<std::string, 2>, 3> tasks = {
      {{"ps", "0"}, {"worker", "0"}, {"worker", "1"}}};
  std::array<std::unique_ptr<Process>, 3> processes;
  for (const std::size_t i : order) {
    if (i != order[0]) std::this_thread::sleep_for(kGap);  // the scenario is made of this pause
    processes[i] = std::make_unique<Process>(std::vector<std::string>{
        Binary("linear_regression"), "--cluster", cluster, "--job", tasks[i][0], "--task",
        tasks[i][1], "--steps", "200", "--wait-for-workers", "2"});
  }
  const auto started = Clock::now();
  Times times;
  times.trained = processes[order[2]]->AwaitOutput("control plane", seconds(30));
  const auto up = Clock::now();
  for (const std::size_t worker : {1u, 2u})
    times.trained &= processes[worker]->AwaitOutput("training begins", seconds(30));
  times.up = Seconds(up - started);
  times.begin = Seconds(Clock::now() - up);
  for (const std::size_t worker : {1u, 2u})
    times.trained &= processes[worker]->Wait(seconds(30)) == 0;
  if (!times.trained) ADD_FAILURE() << processes[1]->Output() << processes[2]->Output();
  return times;
}

TEST(StartOrderTest, TrainingBeginsWithinASecondOfTheLastTask) {  // C1-01
  const std::array<Order, 6> orders = {
      {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}};
  // At the same time, for most of each is a pause; a little apart, so that their last processes do
  // not load their libraries at the same moment.
  std::vector<std::future<Times>> jobs;
  for (const Order& order : orders) {
    jobs.push_back(std::async(std::launch::async, RunInOrder, order));
    std::this_thread::sleep_for(kGap / (orders.size() + 1));
  }
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const Times times = jobs[i].get();
    EXPECT_TRUE(times.trained);
    EXPECT_LT(times.begin, 1) << "order " << i;
    std::printf("order %zu: the last process was up after %.3f s, training began %.3f s later\n", i,
                times.up, times.begin);
  }
}

}  // namespace
}  // namespace weir::testing_process
