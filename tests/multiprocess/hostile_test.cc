// Strangers at the ports of the servers of a job that trains: it goes on, and ends.
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cluster/cluster_spec.h"
#include "multiprocess/process.h"
#include "multiprocess/stranger.h"

namespace weir::testing_process {
namespace {

using std::chrono::seconds;

#ifdef __SANITIZE_ADDRESS__
#define WEIR_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEIR_ADDRESS_SANITIZER 1
#endif
#endif

#ifdef WEIR_ADDRESS_SANITIZER
constexpr long kGrowthKbMax = 512 * 1024;  // it keeps what is freed for a while
#else
constexpr long kGrowthKbMax = 64 * 1024;
#endif

/// Random frames, and as many mutated ones. The full size is 100,000; `ctest -L slow` runs it.
int NumFrames() {
  int frames = 1200;
  if (const char* text = std::getenv("WEIR_HOSTILE_FRAMES")) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &frames)) << text;
  }
  return frames;
}

long StatusKb(pid_t pid, const std::string& field) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(field + ":", 0) == 0) return std::stol(line.substr(field.size() + 1));
  }
  return 0;
}

/// A ps and a worker that train together without end. The spec has a second worker, for whom a
/// stranger passes himself off, and a third that comes at last.
class HostileTest : public testing::Test {
 protected:
  std::unique_ptr<Process> Start(const std::string& job, int index, std::uint64_t steps) const {
    return std::make_unique<Process>(
        std::vector<std::string>{Binary("linear_regression"), "--cluster", cluster_, "--job", job,
                                 "--task", absl::StrCat(index), "--steps", absl::StrCat(steps)});
  }

  void SetUp() override {
    ASSERT_TRUE(worker_->AwaitOutput("training begins", seconds(30))) << worker_->Output();
    const nlohmann::json status = Status();
    for (const auto& entry : status.at("tasks")) {
      if (entry.at("up") == true) data_addresses_.push_back(entry.at("data_address"));
    }
    ASSERT_EQ(data_addresses_.size(), 2u) << status;
  }

  /// Exit code 1: workers of the spec do not run.
  nlohmann::json Status() const {
    Process command({Binary("weir"), "status", cluster_, "--json", "--interval", "0.2"});
    EXPECT_EQ(command.Wait(seconds(30)), 1) << command.Output();
    auto json = nlohmann::json::parse(command.Output(), nullptr, /*allow_exceptions=*/false);
    EXPECT_FALSE(json.is_discarded()) << command.Output();
    return json.is_discarded() ? nlohmann::json::object() : json;
  }

  std::uint64_t GlobalStep() const { return Status().value("global_step", std::uint64_t{0}); }

  /// The hellos to task `server`: none, a client's, a task's.
  std::vector<std::pair<std::string, std::string>> Hellos(std::size_t server) const {
    const TaskId to = {.job = server == 0 ? "ps" : "worker", .index = 0};
    const auto spec = ClusterSpec::ParseFlag(cluster_);
    return {{"no hello", ""},
            {"a client", ClientHello()},
            {"a task", TaskHello(spec->Id("weir"), {.job = "worker", .index = 1}, to)}};
  }

  const std::vector<std::string> addresses_ = FreeAddresses(4);
  const std::string cluster_ = absl::StrCat("ps=", addresses_[0], ";worker=", addresses_[1], ",",
                                            addresses_[2], ",", addresses_[3]);
  const std::unique_ptr<Process> ps_ = Start("ps", 0, 0);
  const std::unique_ptr<Process> worker_ = Start("worker", 0, 1'000'000'000);
  std::vector<std::string> data_addresses_;  // of the ps and of worker 0
};

TEST_F(HostileTest, TrainingGoesOnUnderRandomAndMutatedFrames) {
  std::mt19937_64 random(20261201);
  const int frames = NumFrames();
  const std::uint64_t step_before = GlobalStep();
  const std::array<pid_t, 2> pids = {ps_->pid(), worker_->pid()};
  const std::array<long, 2> resident = {StatusKb(pids[0], "VmRSS"), StatusKb(pids[1], "VmRSS")};
  for (std::size_t server = 0; server < 2; ++server) {
    for (const auto& [name, hello] : Hellos(server)) {
      for (const bool mutated : {false, true}) {
        const auto frame = [&] { return mutated ? MutatedFrame(random) : RandomFrame(random); };
        Stranger stranger(data_addresses_[server], hello);
        int sent = 0, taken = 0;
        for (; taken < frames / 6 + 1 && sent < frames; ++sent)
          taken += stranger.Send(frame()) ? 1 : 0;
        Stranger deaf(data_addresses_[server], hello);
        for (int i = 0; i < frames / 6; ++i) deaf.Flood(frame());
        std::printf("%s, %s, %s frames: %d taken of %d, on %d connections\n",
                    server == 0 ? "ps" : "worker", name.c_str(), mutated ? "mutated" : "random",
                    taken, sent, stranger.connections());
        EXPECT_GT(taken, frames / 6);
        ASSERT_TRUE(ps_->running()) << ps_->Output();
        ASSERT_TRUE(worker_->running()) << worker_->Output();
      }
    }
  }
  for (std::size_t i = 0; i < pids.size(); ++i) {
    const long grown = StatusKb(pids[i], "VmRSS") - resident[i];
    const long peak = StatusKb(pids[i], "VmHWM") - resident[i];
    std::printf("%s: %ld MB resident, then %+ld KB, at most %+ld KB\n", i == 0 ? "ps" : "worker",
                resident[i] / 1024, grown, peak);
    EXPECT_LT(peak, kGrowthKbMax);
  }
  EXPECT_GT(GlobalStep(), step_before);
  worker_->Signal(SIGTERM);
  ASSERT_TRUE(worker_->Wait(seconds(10)).has_value());
  // Who comes now trains on, and ends.
  const auto late = Start("worker", 2, Status().value("global_step", std::uint64_t{0}) + 500);
  EXPECT_EQ(late->Wait(seconds(60)), 0) << late->Output();
  EXPECT_NE(late->Output().find("y = 3.000 x -1.000"), std::string::npos) << late->Output();
}

TEST_F(HostileTest, TrainingGoesOnUnderRandomBytesAtTheGrpcPort) {
  std::mt19937_64 random(20261202);
  const std::uint64_t step_before = GlobalStep();
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  for (int connection = 0; connection < 300; ++connection) {
    std::string bytes(5000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    Stranger stranger(addresses_[static_cast<std::size_t>(connection % 2)],
                      connection % 3 == 0 ? "" : preface);
    stranger.Flood(bytes);
    stranger.Flood(bytes);
  }
  EXPECT_GT(GlobalStep(), step_before);
  EXPECT_TRUE(ps_->running()) << ps_->Output();
  EXPECT_TRUE(worker_->running()) << worker_->Output();
}

}  // namespace
}  // namespace weir::testing_process
