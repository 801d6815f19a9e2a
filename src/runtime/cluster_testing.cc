#include "runtime/cluster_testing.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace weir::runtime {
namespace {

std::string Addresses(int first_port, int count) {
  std::vector<std::string> addresses;
  for (int i = 0; i < count; ++i) addresses.push_back(absl::StrCat("127.0.0.1:", first_port + i));
  return absl::StrJoin(addresses, ",");
}

}  // namespace

ClusterSpec TestCluster::MakeSpec(int ps, int workers) {
  std::vector<std::string> jobs;
  if (ps > 0) jobs.push_back("ps=" + Addresses(7000, ps));
  if (workers > 0) jobs.push_back("worker=" + Addresses(7100, workers));
  return *ClusterSpec::ParseFlag(absl::StrJoin(jobs, ";"));
}

TestCluster::TestCluster(int ps, int workers, std::uint64_t seed)
    : spec_(MakeSpec(ps, workers)), scheduler_(seed), network_(&scheduler_, seed) {}

TestCluster::~TestCluster() {
  for (auto& [task, server] : servers_) server->Close();
}

std::shared_ptr<Scheduler> TestCluster::SchedulerPointer() {
  return std::shared_ptr<Scheduler>(std::shared_ptr<Scheduler>(), &scheduler_);
}

absl::StatusOr<std::unique_ptr<Server>> TestCluster::TryStart(const TaskId& task,
                                                              const std::string& cluster_name) {
  ServerOptions options;
  options.config = *TaskConfig::Create(spec_, task);
  options.cluster_name = cluster_name;
  options.advertise_host = "inproc";
  ServerParts parts{.transport = network_.NewTransport(),
                    .control_plane = control_network_.NewControlPlane(&scheduler_),
                    .scheduler = SchedulerPointer(),
                    .compute = SchedulerPointer(),
                    .logger = logger_};
  return Server::Start(std::move(options), std::move(parts));
}

Server& TestCluster::Start(const TaskId& task) {
  auto server = TryStart(task);
  WEIR_CHECK(server.ok());
  servers_[task] = *std::move(server);
  return *servers_[task];
}

void TestCluster::StartAll() {
  for (const TaskId& task : spec_.AllTasks()) Start(task);
}

void TestCluster::Kill(const TaskId& task) {
  servers_.at(task)->Close();
  servers_.erase(task);
}

absl::StatusOr<Session> TestCluster::Connect(const TaskId& task, const Graph& graph,
                                             const SessionOptions& options) {
  ClientParts parts{.transport = network_.NewTransport(),
                    .control_plane = control_network_.NewControlPlane(&scheduler_),
                    .scheduler = SchedulerPointer()};
  return ConnectSession(std::move(parts), ControlAddress(task), graph, options);
}

}  // namespace weir::runtime
