// `weir launch` with real processes, real signals and real kills.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "multiprocess/process.h"

namespace weir::testing_process {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

const std::string kWeir = Binary("weir");
const std::string kLinearRegression = Binary("linear_regression");
const std::string kModelParallel = Binary("model_parallel");

std::vector<std::string> Launch(std::vector<std::string> options, const std::string& steps) {
  std::vector<std::string> command = {kWeir, "launch"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"--", kLinearRegression, "--steps", steps});
  return command;
}

/// The child of the launcher that is `task` ("worker", 1).
pid_t FindTask(const Process& launcher, const std::string& job, int index) {
  for (const pid_t child : launcher.Children()) {
    const std::string config = EnvironmentOf(child, "TF_CONFIG");
    if (config.empty()) continue;
    const auto task = nlohmann::json::parse(config).at("task");
    if (task.at("type") == job && task.at("index") == index) return child;
  }
  return -1;
}

TEST(LaunchTest, TheSummaryAddsUp) {
  const std::string path = testing::TempDir() + "weir_launch_summary.json";
  Process launcher(Launch({"--ps", "2", "--workers", "3", "--summary", path}, "600"));
  ASSERT_EQ(launcher.Wait(seconds(60)), 0) << launcher.Output();
  std::ifstream file(path);
  const auto summary = nlohmann::json::parse(file);
  std::remove(path.c_str());
  EXPECT_EQ(summary.at("global_steps"), 600);
  EXPECT_GT(summary.at("steps_per_second"), 0);
  EXPECT_GT(summary.at("seconds"), 0);
  int steps = 0;
  ASSERT_EQ(summary.at("workers").size(), 3u);
  for (const auto& worker : summary.at("workers")) steps += worker.at("steps").get<int>();
  EXPECT_EQ(steps, 600);
  ASSERT_EQ(summary.at("ps").size(), 2u);
  int trained = 0;
  for (const auto& ps : summary.at("ps")) {
    EXPECT_GT(ps.at("bytes"), 0) << ps;
    for (const auto& variable : ps.at("variables")) {
      if (variable.at("name") != "slope" && variable.at("name") != "offset") continue;
      EXPECT_EQ(variable.at("updates"), 600) << variable;
      EXPECT_EQ(variable.at("bytes"), 4) << variable;
      ++trained;
    }
  }
  EXPECT_EQ(trained, 2);
  for (const char* field : {"p50", "p99", "max"}) EXPECT_GE(summary.at("staleness").at(field), 0);
}

TEST(LaunchTest, CtrlCEndsEverything) {  // C9-03
  Process launcher(Launch({"--ps", "2", "--workers", "2"}, "100000000"));
  ASSERT_TRUE(launcher.AwaitOutput("[worker:1] ", seconds(30))) << launcher.Output();
  const std::vector<pid_t> children = launcher.Children();
  EXPECT_EQ(children.size(), 4u);
  launcher.Signal(SIGINT);
  EXPECT_EQ(launcher.Wait(seconds(10)), 128 + SIGINT) << launcher.Output();
  EXPECT_TRUE(AwaitGone(children, seconds(1)));
  EXPECT_THAT(launcher.Output(), HasSubstr("interrupted"));
}

TEST(LaunchTest, ADeadLauncherTakesItsTasksAlong) {  // C9-03
  Process launcher(Launch({"--ps", "1", "--workers", "2"}, "100000000"));
  ASSERT_TRUE(launcher.AwaitOutput("[worker:1] ", seconds(30))) << launcher.Output();
  const std::vector<pid_t> children = launcher.Children();
  launcher.Signal(SIGKILL);
  EXPECT_TRUE(AwaitGone(children, seconds(5)));
}

TEST(LaunchTest, AKilledWorkerIsNamedAndTheOthersFinish) {  // C9-01, C9-04
  Process launcher(Launch({"--ps", "1", "--workers", "2"}, "30000"));
  ASSERT_TRUE(launcher.AwaitOutput("[worker:1] ", seconds(30))) << launcher.Output();
  const std::vector<pid_t> children = launcher.Children();
  const pid_t victim = FindTask(launcher, "worker", 1);
  ASSERT_GT(victim, 0) << launcher.Output();
  ::kill(victim, SIGKILL);
  EXPECT_EQ(launcher.Wait(seconds(60)), 1) << launcher.Output();
  EXPECT_THAT(launcher.Output(), HasSubstr("worker:1 was killed by signal 9"));
  EXPECT_THAT(launcher.Output(), HasSubstr("first failure: worker:1"));
  EXPECT_THAT(launcher.Output(), HasSubstr("[worker:0] y = "));  // the survivor finished
  EXPECT_LT(Count(launcher.Output(), "\n"), 100) << "C9-01: 30,000 steps are no 30,000 lines";
  EXPECT_TRUE(AwaitGone(children, seconds(1)));
}

TEST(LaunchTest, AKilledPsEndsTheJob) {
  Process launcher(Launch({"--ps", "1", "--workers", "2"}, "100000000"));
  ASSERT_TRUE(launcher.AwaitOutput("[worker:1] ", seconds(30))) << launcher.Output();
  const std::vector<pid_t> children = launcher.Children();
  ::kill(FindTask(launcher, "ps", 0), SIGKILL);
  EXPECT_EQ(launcher.Wait(seconds(20)), 1) << launcher.Output();
  EXPECT_THAT(launcher.Output(), HasSubstr("first failure: ps:0 was killed by signal 9"));
  EXPECT_TRUE(AwaitGone(children, seconds(1)));
}

TEST(LaunchTest, AWorkerThatOnlyServesEndsWithTheOneThatTrains) {
  Process launcher({kWeir, "launch", "--ps", "1", "--workers", "2", "--", kModelParallel,
                    "--hidden", "8", "--steps", "50"});
  EXPECT_EQ(launcher.Wait(seconds(60)), 0) << launcher.Output();
  EXPECT_THAT(launcher.Output(), HasSubstr("[worker:0] 4 in flight"));
}

TEST(LaunchTest, AWorkerThatOnlyServesEndsWhenTheOneThatTrainsIsKilled) {
  Process launcher({kWeir, "launch", "--ps", "0", "--workers", "2", "--", kModelParallel,
                    "--hidden", "8", "--steps", "100000000"});
  ASSERT_TRUE(launcher.AwaitOutput("[worker:1] ", seconds(30))) << launcher.Output();
  const std::vector<pid_t> children = launcher.Children();
  ::kill(FindTask(launcher, "worker", 0), SIGKILL);
  EXPECT_EQ(launcher.Wait(seconds(20)), 1) << launcher.Output();
  EXPECT_THAT(launcher.Output(), HasSubstr("first failure: worker:0 was killed by signal 9"));
  EXPECT_THAT(launcher.Output(), Not(HasSubstr("worker:1 was killed")));
  EXPECT_TRUE(AwaitGone(children, seconds(1)));
}

TEST(LaunchTest, CtrlCIsHeardWhileATaskFloodsItsOutput) {
  Process launcher({kWeir, "launch", "--ps", "0", "--workers", "1", "--", "yes"});
  ASSERT_TRUE(launcher.AwaitOutput("[worker:0] y", seconds(10)));
  launcher.Signal(SIGINT);
  EXPECT_EQ(launcher.Wait(seconds(10)), 128 + SIGINT);
}

/// `command`, with SIGHUP ignored: what nohup does.
std::vector<std::string> Nohup(const std::vector<std::string>& command) {
  std::vector<std::string> all = {"/bin/sh", "-c", R"(trap '' HUP; exec "$0" "$@")"};
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

TEST(LaunchTest, AStubbornTaskIsKilledAndABystanderLives) {  // C9-03
  Process bystander({"/bin/sleep", "1000"});
  Process launcher({kWeir, "launch", "--ps", "2", "--workers", "3", "--stop-timeout", "0.5", "--",
                    "/bin/sh", "-c",
                    "trap '' INT TERM; echo ready >&2; while :; do sleep 1; done"});
  for (const char* task : {"ps:0", "ps:1", "worker:0", "worker:1", "worker:2"}) {
    ASSERT_TRUE(launcher.AwaitOutput(std::string("[") + task + "] ready", seconds(30)))
        << launcher.Output();
  }
  const std::vector<pid_t> children = launcher.Children();
  EXPECT_EQ(children.size(), 5u);
  launcher.Signal(SIGINT);
  EXPECT_EQ(launcher.Wait(seconds(10)), 128 + SIGINT) << launcher.Output();
  EXPECT_TRUE(AwaitGone(children, seconds(1)));
  EXPECT_THAT(launcher.Output(), HasSubstr("worker:2 does not end by itself: killing it"));
  EXPECT_TRUE(bystander.running());
}

TEST(LaunchTest, TheFirstFailureAndItsLastLinesComeLast) {  // C9-04
  const std::string script =
      "case \"$TF_CONFIG\" in *'\"index\":2,\"type\":\"worker\"'*) sleep 0.2; echo 'the cause' "
      ">&2; "
      "exit 3;; *'\"type\":\"worker\"'*) sleep 0.5; exit 1;; esac; exec sleep 1000";
  Process launcher({kWeir, "launch", "--ps", "1", "--workers", "4", "--", "/bin/sh", "-c", script});
  EXPECT_EQ(launcher.Wait(seconds(20)), 1) << launcher.Output();
  const std::string output = launcher.Output();
  const std::size_t summary = output.find("[launch] first failure: worker:2 ended with code 3\n");
  ASSERT_NE(summary, std::string::npos) << output;
  const std::string last = output.substr(summary);
  EXPECT_THAT(last, HasSubstr("[launch]   | the cause\n[launch] then worker:")) << output;
  EXPECT_THAT(last, Not(HasSubstr("\n[worker:"))) << "the summary is the end";
}

TEST(LaunchTest, ALauncherUnderNohupOutlivesItsTerminal) {
  Process launcher(Nohup(Launch({"--ps", "1", "--workers", "1"}, "100000000")));
  ASSERT_TRUE(launcher.AwaitOutput("training begins", seconds(30))) << launcher.Output();
  launcher.Signal(SIGHUP);
  launcher.Signal(SIGINT);
  EXPECT_EQ(launcher.Wait(seconds(10)), 128 + SIGINT);
  EXPECT_THAT(launcher.Output(), Not(HasSubstr("interrupted again")));  // one signal, not two
}

TEST(LaunchTest, AServerUnderNohupOutlivesItsTerminal) {
  const std::string cluster = "ps=" + FreeAddresses(1)[0];
  Process server(Nohup({kWeir, "serve", "--cluster", cluster, "--job", "ps", "--task", "0"}));
  ASSERT_TRUE(server.AwaitOutput("serving", seconds(20))) << server.Output();
  server.Signal(SIGHUP);
  Process status({kWeir, "status", cluster});
  EXPECT_EQ(status.Wait(seconds(20)), 0) << status.Output() << server.Output();
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(seconds(10)), 0) << server.Output();
}

TEST(LaunchTest, AServerThatIsToldToEndBeforeItServesHasNotFailed) {
  // The ps takes no notice of the signal, as one that is still loading: it dies by it.
  Process launcher({kWeir, "launch", "--ps", "1", "--workers", "1", "--", "/bin/sh", "-c",
                    R"(case "$TF_CONFIG" in *'"type":"ps"'*) exec sleep 1000;; esac)"});
  EXPECT_EQ(launcher.Wait(seconds(10)), 0) << launcher.Output();
}

TEST(LaunchTest, DeadlinesHaveBounds) {
  for (const char* value : {"inf", "nan", "1e10", "0"}) {
    Process launcher({kWeir, "launch", "--stop-timeout", value, "--", "true"});
    EXPECT_NE(launcher.Wait(seconds(10)), 0) << value;
    EXPECT_THAT(launcher.Output(), HasSubstr("--stop-timeout")) << value;
  }
}

TEST(LaunchTest, AWorkerKilledBeforeTheOthersBeganEndsTheJob) {
  // Worker 1 dies before it is one.
  const std::string script =
      "case \"$TF_CONFIG\" in *'\"index\":1,\"type\":\"worker\"'*) kill -9 $$;; esac; exec " +
      kLinearRegression + " --steps 100000000 --wait-for-workers 2";
  Process launcher({kWeir, "launch", "--ps", "1", "--workers", "2", "--", "sh", "-c", script});
  EXPECT_EQ(launcher.Wait(seconds(20)), 1) << launcher.Output();
  EXPECT_THAT(launcher.Output(), HasSubstr("first failure: worker:1 was killed by signal 9"));
  EXPECT_THAT(launcher.Output(), HasSubstr("the job cannot begin without worker:1"));
}

TEST(LaunchTest, APsThatServesNobodyIsAFailure) {
  Process launcher({kWeir, "launch", "--ps", "1", "--workers", "2", "--", "true"});
  EXPECT_EQ(launcher.Wait(seconds(20)), 1) << launcher.Output();
  EXPECT_THAT(launcher.Output(), HasSubstr("ps:0 ended with code 0"));
}

TEST(LaunchTest, ADryRunTellsEveryTaskAndStartsNone) {
  const std::string path = testing::TempDir() + "weir_dry_run_was_started";
  Process launcher(
      {kWeir, "launch", "--ps", "1", "--workers", "2", "--dry-run", "--", "/bin/touch", path});
  EXPECT_EQ(launcher.Wait(seconds(10)), 0) << launcher.Output();
  EXPECT_FALSE(std::ifstream(path).is_open()) << launcher.Output();
  const std::string output = launcher.Output();
  EXPECT_THAT(output, HasSubstr("cluster 'ps=127.0.0.1:"));
  for (const char* task :
       {"ps:0 at 127.0.0.1:", "worker:0 at 127.0.0.1:", "worker:1 at 127.0.0.1:"})
    EXPECT_THAT(output, HasSubstr(task));
  EXPECT_EQ(Count(output, "TF_CONFIG="), 3) << output;
  EXPECT_EQ(Count(output, "/bin/touch " + path), 3) << output;
}

TEST(LaunchTest, AProgramThatIsNotThereIsSaidSo) {
  Process launcher({kWeir, "launch", "--", "/no/such/program"});
  EXPECT_EQ(launcher.Wait(seconds(10)), 1);
  EXPECT_THAT(launcher.Output(), HasSubstr("/no/such/program"));
}

TEST(LaunchTest, ATakenPortIsNamedWithItsReason) {  // C1-03
  const std::string address = FreeAddresses(1)[0];
  const std::vector<std::string> serve = {kWeir,   "serve", "--cluster", "ps=" + address,
                                          "--job", "ps",    "--task",    "0"};
  Process first(serve);
  ASSERT_TRUE(first.AwaitOutput("serving", seconds(20))) << first.Output();
  Process second(serve);
  EXPECT_EQ(second.Wait(seconds(20)), 1);
  EXPECT_THAT(second.Output(), HasSubstr("ps:0"));
  EXPECT_THAT(second.Output(), HasSubstr(address));
  EXPECT_THAT(second.Output(), HasSubstr("Address already in use"));
  EXPECT_THAT(second.Output(), HasSubstr("ps:0 runs there already, process "));
  EXPECT_EQ(Count(second.Output(), "\n"), 1) << second.Output();
  first.Signal(SIGTERM);
  EXPECT_EQ(first.Wait(seconds(10)), 0) << first.Output();
}

/// Another program that listens on a port of its own, and says nothing.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(any);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&any), size), 0);
    EXPECT_EQ(listen(fd_, 1), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&any), &size), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(any.sin_port));
  }
  ~Listener() { close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  const std::string& address() const { return address_; }

 private:
  const int fd_;
  std::string address_;
};

TEST(LaunchTest, APortOfAnotherProgramIsNamedWithTheWayOut) {  // C1-03
  const Listener other;
  Process serve(
      {kWeir, "serve", "--cluster", "ps=" + other.address(), "--job", "ps", "--task", "0"});
  EXPECT_EQ(serve.Wait(seconds(20)), 1);
  for (const char* part : {"ps:0", "Address already in use", "end the program that has the port"})
    EXPECT_THAT(serve.Output(), HasSubstr(part));
  EXPECT_THAT(serve.Output(), HasSubstr(other.address()));
  EXPECT_EQ(Count(serve.Output(), "\n"), 1) << serve.Output();
}

}  // namespace
}  // namespace weir::testing_process
