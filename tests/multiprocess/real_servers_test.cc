// Servers over gRPC and TCP as programs have them, but in this process: for what only real sockets
// show.
#include <ATen/Functions.h>
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "cli/production.h"
#include "multiprocess/process.h"
#include "runtime/server.h"

namespace weir::testing_process {
namespace {

using runtime::Server;

int PortOf(const std::string& address) {
  return HostPort::Parse(address)->port;
}

std::unique_ptr<Server> Start(const ClusterSpec& cluster, const TaskId& task, int data_port = 0) {
  runtime::ServerOptions options;
  options.config = *TaskConfig::Create(cluster, task);
  options.bind_host = cluster.Address(task)->host;
  options.data_port = data_port;
  auto server = Server::Start(std::move(options), cli::ProductionParts(1, 1, Logger::Null()));
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : nullptr;
}

/// One ps and one worker at these hosts; data planes anywhere, or at the ports given.
class Pair {
 public:
  Pair(const std::string& ps_host, const std::string& worker_host,
       const std::vector<std::string>& addresses)
      : cluster_(*ClusterSpec::ParseFlag(absl::StrCat("ps=", ps_host, ":", PortOf(addresses[0]),
                                                      ";worker=", worker_host, ":",
                                                      PortOf(addresses[1])))) {
    const bool fixed = addresses.size() == 4;
    ps_ = Start(cluster_, {"ps", 0}, fixed ? PortOf(addresses[2]) : 0);
    worker_ = Start(cluster_, {"worker", 0}, fixed ? PortOf(addresses[3]) : 0);
  }

  bool started() const { return ps_ && worker_; }
  const Server& ps() const { return *ps_; }
  Server& worker() { return *worker_; }

  /// A step from the worker on a counter of the ps.
  absl::StatusOr<double> Count() {
    Graph graph;
    Variable counter;
    Operation add;
    {
      DeviceScope scope(graph, "/job:ps/task:0");
      counter = graph.Variable("counter", Zeros({}));
      add = graph.AssignAdd(counter, graph.Const(at::ones({})));
    }
    auto session = worker_->OpenSession(graph);
    if (!session.ok()) return session.status();
    if (const auto run = session->Run({}, {}, {add}); !run.ok()) return run.status();
    const auto read = session->Run({}, {counter});
    if (!read.ok()) return read.status();
    return (*read)[0].item<double>();
  }

 private:
  const ClusterSpec cluster_;
  std::unique_ptr<Server> ps_, worker_;
};

TEST(RealServersTest, AJobMayFollowAnotherOnItsPortsAtOnce) {  // C1-03
  const std::vector<std::string> addresses = FreeAddresses(4);
  for (int run = 0; run < 20; ++run) {
    Pair pair("127.0.0.1", "127.0.0.1", addresses);
    ASSERT_TRUE(pair.started()) << "run " << run;
    const auto count = pair.Count();
    ASSERT_TRUE(count.ok()) << "run " << run << ": " << count.status();
    EXPECT_EQ(*count, 1);
  }
}

bool HasIpv6Loopback() {
  const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  ::close(fd);
  return bound;
}

TEST(RealServersTest, AJobRunsOnIpv6) {  // C1-10
  if (!HasIpv6Loopback()) GTEST_SKIP() << "this host has no ::1";
  Pair pair("[::1]", "[::1]", FreeAddresses(2));
  ASSERT_TRUE(pair.started());
  EXPECT_THAT(pair.ps().data_address(), testing::StartsWith("[::1]:"));
  const auto count = pair.Count();
  ASSERT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(*count, 1);
}

// What is told to others is the host of the spec, whatever this host's name resolves to.
TEST(RealServersTest, TheAddressIsThatOfTheSpec) {  // C1-11
  Pair pair("127.0.0.2", "127.0.0.3", FreeAddresses(2));
  ASSERT_TRUE(pair.started());
  EXPECT_THAT(pair.ps().data_address(), testing::StartsWith("127.0.0.2:"));
  EXPECT_THAT(pair.worker().data_address(), testing::StartsWith("127.0.0.3:"));
  const auto count = pair.Count();
  ASSERT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(*count, 1);
}

// Above gRPC's own limit of 4 MiB for a message, on both planes and in both directions.
TEST(RealServersTest, ATensorOfFiveMebibytesAndAFloatGoesThereAndBack) {  // C4-05
  constexpr std::int64_t kFloats = (5 << 20) / 4 + 1;
  Pair pair("127.0.0.1", "127.0.0.1", FreeAddresses(2));
  ASSERT_TRUE(pair.started());
  Graph graph;
  Variable value;
  {
    DeviceScope scope(graph, "/job:ps/task:0");
    value = graph.Variable("value", FromTensor(at::arange(kFloats, at::kFloat)));
  }
  const Output pushed = graph.Placeholder("pushed", at::kFloat, {kFloats});
  const Operation push = graph.Assign(value, pushed);
  auto session = pair.worker().OpenSession(graph);
  ASSERT_TRUE(session.ok()) << session.status();
  const auto first = session->Run({}, {value});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(at::equal((*first)[0], at::arange(kFloats, at::kFloat)));
  const at::Tensor next = at::arange(kFloats, 0, -1, at::kFloat);
  ASSERT_TRUE(session->Run({{pushed, next}}, {}, {push}).ok());
  const auto second = session->Run({}, {value});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(at::equal((*second)[0], next));
  EXPECT_EQ((*second)[0][kFloats - 1].item<float>(), 1);
}

}  // namespace
}  // namespace weir::testing_process
