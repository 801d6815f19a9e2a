// Processes that are not who they should be, or come when nobody waits for them any more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "multiprocess/process.h"

namespace weir::testing_process {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

/// A spec of one ps and some workers, as flags.
struct Spec {
  explicit Spec(int workers)
      : addresses(FreeAddresses(workers + 1)),
        cluster(absl::StrCat("ps=", addresses[0], ";worker=",
                             absl::StrJoin(addresses.begin() + 1, addresses.end(), ","))) {}

  std::unique_ptr<Process> StartPs() const {
    return std::make_unique<Process>(std::vector<std::string>{
        Binary("weir"), "serve", "--cluster", cluster, "--job", "ps", "--task", "0"});
  }
  std::unique_ptr<Process> StartWorker(int index, std::vector<std::string> flags) const {
    std::vector<std::string> command = {
        Binary("linear_regression"), "--cluster", cluster, "--job", "worker", "--task",
        absl::StrCat(index)};
    command.insert(command.end(), flags.begin(), flags.end());
    return std::make_unique<Process>(std::move(command));
  }

  const std::vector<std::string> addresses;  // the ps first
  const std::string cluster;
};

TEST(IdentityTest, AWorkerWithoutItsPsGivesUpAndNamesIt) {  // C1-01
  const Spec spec(1);
  const auto worker = spec.StartWorker(0, {"--start-timeout", "1"});
  EXPECT_EQ(worker->Wait(seconds(20)), 1) << worker->Output();
  EXPECT_THAT(worker->Output(), HasSubstr("ps:0 (" + spec.addresses[0] + ")"));
}

// Local indices that were taken for global ones: 0, 1, 0, 1.
TEST(IdentityTest, IndicesGivenTwiceAreRefusedAndThoseMissingNamed) {  // C1-07
  const Spec spec(4);
  const std::vector<std::string> flags = {"--steps",         "1000", "--wait-for-workers", "4",
                                          "--start-timeout", "4"};
  const auto ps = spec.StartPs();
  ASSERT_TRUE(ps->AwaitOutput("serving", seconds(30))) << ps->Output();
  std::vector<std::unique_ptr<Process>> first;
  for (const int index : {0, 1}) first.push_back(spec.StartWorker(index, flags));
  for (const auto& worker : first)
    ASSERT_TRUE(worker->AwaitOutput("role from", seconds(30))) << worker->Output();
  for (const int index : {0, 1}) {
    const auto again = spec.StartWorker(index, flags);
    EXPECT_EQ(again->Wait(seconds(20)), 1) << again->Output();
    const std::string worker = absl::StrCat("worker:", index);
    EXPECT_THAT(again->Output(),
                HasSubstr(worker + " runs there already, process " +
                          std::to_string(first[static_cast<std::size_t>(index)]->pid())));
    EXPECT_THAT(again->Output(), HasSubstr(spec.addresses[static_cast<std::size_t>(index) + 1]));
  }
  for (const auto& worker : first) {
    EXPECT_EQ(worker->Wait(seconds(30)), 1) << worker->Output();
    EXPECT_THAT(worker->Output(), HasSubstr(absl::StrCat("worker:2 (", spec.addresses[3],
                                                         "), worker:3 (", spec.addresses[4], ")")));
  }
  Process status({Binary("weir"), "status", "ps=" + spec.addresses[0], "--json"});
  ASSERT_TRUE(status.Wait(seconds(30)).has_value());
  EXPECT_EQ(Count(status.Output(), "\"slope\""), 1) << status.Output();
  const auto json = nlohmann::json::parse(status.Output(), nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(json.is_discarded()) << status.Output();
  for (const auto& variable : json.at("tasks").at(0).at("variables")) {
    const std::string name = variable.at("name");
    if (name == "slope" || name == "global_step") {
      EXPECT_EQ(variable.at("version"), 0) << variable;
    }
  }
  ps->Signal(SIGTERM);
  EXPECT_EQ(ps->Wait(seconds(10)), 0) << ps->Output();
}

TEST(IdentityTest, AWorkerThatComesAfterTheEndSaysSoAndEndsWell) {  // C1-12
  const Spec spec(2);
  const auto ps = spec.StartPs();
  const auto chief = spec.StartWorker(0, {"--steps", "100", "--wait-for-workers", "0"});
  ASSERT_EQ(chief->Wait(seconds(30)), 0) << chief->Output();
  const auto late = spec.StartWorker(1, {"--steps", "100", "--wait-for-workers", "0"});
  EXPECT_EQ(late->Wait(seconds(20)), 0) << late->Output();
  EXPECT_THAT(late->Output(), HasSubstr("training has ended already, at step 100 of 100"));
  ps->Signal(SIGTERM);
  EXPECT_EQ(ps->Wait(seconds(10)), 0) << ps->Output();
}

}  // namespace
}  // namespace weir::testing_process
