// Workers wait for each other on a ps that outlives them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "multiprocess/process.h"

namespace weir::testing_process {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

/// A ps that serves for as long as the test, and two workers that it starts.
class BarrierTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(ps_.AwaitOutput("serving", seconds(30))) << ps_.Output(); }

  std::unique_ptr<Process> StartWorker(int index, const std::string& steps,
                                       const std::string& start_timeout = "30") {
    return std::make_unique<Process>(
        std::vector<std::string>{Binary("linear_regression"), "--cluster", cluster_, "--job",
                                 "worker", "--task", absl::StrCat(index), "--steps", steps,
                                 "--wait-for-workers", "2", "--start-timeout", start_timeout});
  }

  void ExpectThatItWaitsAlone(int index) {
    const auto worker = StartWorker(index, "100000000", /*start_timeout=*/"1");
    EXPECT_EQ(worker->Wait(seconds(20)), 1) << worker->Output();
    EXPECT_THAT(worker->Output(), HasSubstr("1 of 2 workers are ready"));
  }

  const std::vector<std::string> addresses_ = FreeAddresses(3);
  const std::string cluster_ =
      absl::StrCat("ps=", addresses_[0], ";worker=", addresses_[1], ",", addresses_[2]);
  Process ps_{{Binary("weir"), "serve", "--cluster", cluster_, "--job", "ps", "--task", "0"}};
};

TEST_F(BarrierTest, ALaterJobWaitsForItsOwnWorkers) {
  const auto first = StartWorker(0, "100");
  const auto second = StartWorker(1, "100");
  ASSERT_EQ(first->Wait(seconds(30)), 0) << first->Output();
  ASSERT_EQ(second->Wait(seconds(30)), 0) << second->Output();
  ExpectThatItWaitsAlone(0);
  ExpectThatItWaitsAlone(1);
  const auto third = StartWorker(0, "200");
  const auto fourth = StartWorker(1, "200");
  EXPECT_EQ(third->Wait(seconds(30)), 0) << third->Output();
  EXPECT_EQ(fourth->Wait(seconds(30)), 0) << fourth->Output();
}

TEST_F(BarrierTest, AWorkerThatComesBackIsOneWorker) {
  ExpectThatItWaitsAlone(1);  // has given up
  ExpectThatItWaitsAlone(1);  // and is counted once
  // While the others train it does not wait; killed, so that nobody could tidy up.
  const auto first = StartWorker(0, "100000000");
  auto second = StartWorker(1, "100000000");
  ASSERT_TRUE(first->AwaitOutput("training begins", seconds(30))) << first->Output();
  ASSERT_TRUE(second->AwaitOutput("training begins", seconds(30))) << second->Output();
  second->Signal(SIGKILL);
  ASSERT_TRUE(second->Wait(seconds(10)).has_value());
  second = StartWorker(1, "100000000");
  EXPECT_TRUE(second->AwaitOutput("training begins", seconds(30))) << second->Output();
  EXPECT_TRUE(first->running()) << first->Output();
  // A job that crashed leaves nobody to be counted.
  for (const Process* worker : {first.get(), second.get()}) worker->Signal(SIGKILL);
  ASSERT_TRUE(first->Wait(seconds(10)).has_value());
  ASSERT_TRUE(second->Wait(seconds(10)).has_value());
  ExpectThatItWaitsAlone(0);
}

}  // namespace
}  // namespace weir::testing_process
