#include "cli/local_cluster.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weir::cli {

absl::StatusOr<ClusterSpec> LocalCluster(int ps, const std::vector<int>& ports) {
  const int workers = static_cast<int>(ports.size()) - ps;
  const auto addresses = [&](int first, int count) {
    std::vector<std::string> parts;
    for (int i = first; i < first + count; ++i)
      parts.push_back(absl::StrCat("127.0.0.1:", ports[static_cast<std::size_t>(i)]));
    return absl::StrJoin(parts, ",");
  };
  std::vector<std::string> jobs;
  if (ps > 0) jobs.push_back("ps=" + addresses(0, ps));
  if (workers > 0) jobs.push_back("worker=" + addresses(ps, workers));
  return ClusterSpec::ParseFlag(absl::StrJoin(jobs, ";"));
}

std::string TfConfig(const ClusterSpec& cluster, const TaskId& task) {
  nlohmann::json json;
  for (const auto& [job, tasks] : cluster.jobs()) {
    json["cluster"][job] = nlohmann::json::array();
    for (const auto& [index, address] : tasks) json["cluster"][job].push_back(address.ToString());
  }
  json["task"] = {{"type", task.job}, {"index", task.index}};
  return json.dump();
}

}  // namespace weir::cli
