#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/mutex.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/flag_checks.h"
#include "cluster/cluster_spec.h"
#include "rpc/grpc/control_plane.h"
#include "runtime/gather.h"
#include "weir/strategy.h"

namespace weir::cli {
namespace {

struct StatusOptions {
  std::string cluster;
  bool json = false;
  double interval_s = 0.5;
  double timeout_s = 2;
};

using Statuses = std::map<TaskId, absl::StatusOr<rpc::TaskStatus>>;

/// Asks every task at once; a task that does not answer in time has its error for an answer.
Statuses AskAll(const ClusterSpec& cluster, rpc::ControlPlane& control_plane, Scheduler& scheduler,
                Duration timeout) {
  struct Shared {
    Mutex mutex;
    Statuses statuses WEIR_GUARDED_BY(mutex);
  };
  auto shared = std::make_shared<Shared>();
  std::map<TaskId, std::shared_ptr<rpc::TaskClient>> clients;
  for (const TaskId& task : cluster.AllTasks())
    clients[task] = control_plane.NewClient(cluster.Address(task)->ToString());
  const TimePoint deadline = scheduler.Now() + timeout;
  runtime::Gather(scheduler, cluster.AllTasks(), deadline + std::chrono::seconds(1),
                  [&](const TaskId& task, auto reply) {
                    rpc::Caller caller;
                    caller.from_incarnation = 1;
                    caller.to = task;
                    clients[task]->GetStatus(
                        caller, /*with_variables=*/true,
                        {.deadline = deadline, .wait_for_ready = false},
                        [shared, task, reply](absl::StatusOr<rpc::TaskStatus> status) {
                          {
                            MutexLock lock(shared->mutex);
                            shared->statuses.insert_or_assign(task, std::move(status));
                          }
                          reply(absl::OkStatus());
                        });
                  })
      .IgnoreError();
  MutexLock lock(shared->mutex);
  for (const TaskId& task : cluster.AllTasks())
    shared->statuses.try_emplace(task, absl::DeadlineExceededError("no answer"));
  return shared->statuses;
}

std::uint64_t GlobalStepOf(const Statuses& statuses) {
  for (const auto& [task, status] : statuses) {
    if (!status.ok()) continue;
    for (const rpc::VariableStatus& variable : status->variables) {
      if (variable.name == kGlobalStepName) return variable.version;
    }
  }
  return 0;
}

std::string ShapeText(const std::vector<std::int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

void PrintTable(const ClusterSpec& cluster, const Statuses& statuses, double steps_per_second) {
  std::printf("global step %llu, %.0f steps/s\n\n",
              static_cast<unsigned long long>(GlobalStepOf(statuses)), steps_per_second);
  std::printf("%-12s %-22s %-18s %10s %10s %12s %12s\n", "task", "address", "incarnation", "up",
              "steps", "MB in", "MB out");
  for (const auto& [task, status] : statuses) {
    const std::string address = cluster.Address(task)->ToString();
    if (!status.ok()) {
      std::printf("%-12s %-22s %s\n", task.ToString().c_str(), address.c_str(),
                  status.status().ToString().c_str());
      continue;
    }
    std::printf("%-12s %-22s %016llx %9.0fs %10llu %12.1f %12.1f\n", task.ToString().c_str(),
                address.c_str(), static_cast<unsigned long long>(status->incarnation),
                status->uptime_s, static_cast<unsigned long long>(status->steps_run),
                static_cast<double>(status->bytes_in) / 1e6,
                static_cast<double>(status->bytes_out) / 1e6);
  }
  std::printf("\n%-12s %-28s %-9s %-14s %12s %10s   %s\n", "task", "variable", "dtype", "shape",
              "bytes", "version", "staleness p50/p99/max");
  for (const auto& [task, status] : statuses) {
    if (!status.ok()) continue;
    for (const rpc::VariableStatus& variable : status->variables) {
      const std::string version = variable.initialized ? absl::StrCat(variable.version) : "(none)";
      std::printf("%-12s %-28s %-9s %-14s %12llu %10s   %llu/%llu/%llu\n", task.ToString().c_str(),
                  variable.name.c_str(), variable.dtype.c_str(), ShapeText(variable.shape).c_str(),
                  static_cast<unsigned long long>(variable.bytes), version.c_str(),
                  static_cast<unsigned long long>(variable.staleness.p50),
                  static_cast<unsigned long long>(variable.staleness.p99),
                  static_cast<unsigned long long>(variable.staleness.max));
    }
  }
}

void PrintJson(const ClusterSpec& cluster, const Statuses& statuses, double steps_per_second) {
  nlohmann::ordered_json json = {{"global_step", GlobalStepOf(statuses)},
                                 {"steps_per_second", steps_per_second},
                                 {"tasks", nlohmann::ordered_json::array()}};
  for (const auto& [task, status] : statuses) {
    nlohmann::ordered_json entry = {{"task", task.ToString()},
                                    {"address", cluster.Address(task)->ToString()},
                                    {"up", status.ok()}};
    if (!status.ok()) {
      entry["error"] = status.status().ToString();
    } else {
      entry["incarnation"] = absl::StrFormat("%016x", status->incarnation);
      entry["data_address"] = status->data_address;
      entry["version"] = status->version;
      entry["pid"] = status->pid;
      entry["uptime_s"] = status->uptime_s;
      entry["steps_run"] = status->steps_run;
      entry["steps_running"] = status->steps_running;
      entry["bytes_in"] = status->bytes_in;
      entry["bytes_out"] = status->bytes_out;
      entry["variables"] = nlohmann::ordered_json::array();
      for (const rpc::VariableStatus& variable : status->variables) {
        entry["variables"].push_back({{"name", variable.name},
                                      {"container", variable.container},
                                      {"dtype", variable.dtype},
                                      {"shape", variable.shape},
                                      {"bytes", variable.bytes},
                                      {"initialized", variable.initialized},
                                      {"version", variable.version},
                                      {"staleness",
                                       {{"p50", variable.staleness.p50},
                                        {"p99", variable.staleness.p99},
                                        {"max", variable.staleness.max}}}});
      }
    }
    json["tasks"].push_back(std::move(entry));
  }
  std::printf("%s\n", json.dump(2).c_str());
}

absl::StatusOr<int> ShowStatus(const StatusOptions& options) {
  WEIR_ASSIGN_OR_RETURN(const ClusterSpec cluster, ClusterSpec::ParseFlag(options.cluster));
  const auto control_plane = rpc::NewGrpcControlPlane();
  const auto scheduler = NewPoolScheduler(1);
  const Statuses before =
      AskAll(cluster, *control_plane, *scheduler, Milliseconds(options.timeout_s));
  const auto began = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(Milliseconds(options.interval_s));  // a rate needs two readings
  const Statuses after =
      AskAll(cluster, *control_plane, *scheduler, Milliseconds(options.timeout_s));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const std::uint64_t first = GlobalStepOf(before);
  const std::uint64_t last = GlobalStepOf(after);
  const double rate = last > first ? static_cast<double>(last - first) / seconds : 0;
  options.json ? PrintJson(cluster, after, rate) : PrintTable(cluster, after, rate);
  scheduler->Close();
  scheduler->Join();
  for (const auto& [task, status] : after) {
    if (!status.ok()) return 1;
  }
  return 0;
}

}  // namespace

void AddStatusCommand(CLI::App& weir, int& exit_code) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* command = weir.add_subcommand(
      "status", "Show what the tasks of a cluster are doing; exit code 1 when one does not answer");
  command->add_option("--cluster,cluster", options->cluster, "The cluster: 'ps=h:p,h:p;worker=h:p'")
      ->required();
  command->add_flag("--json", options->json, "As JSON");
  command
      ->add_option("--interval", options->interval_s,
                   "Seconds between the two readings that make a rate")
      ->capture_default_str()
      ->check(SecondsFlag());
  command->add_option("--timeout", options->timeout_s, "Seconds to wait for a task's answer")
      ->capture_default_str()
      ->check(SecondsFlag());
  command->callback([options, &exit_code] {
    const auto result = ShowStatus(*options);
    exit_code = result.ok() ? *result : ReportStatus(result.status());
  });
}

}  // namespace weir::cli
