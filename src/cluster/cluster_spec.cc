#include "cluster/cluster_spec.h"

#include <openssl/sha.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cluster/spec_draft.h"

namespace weir {
namespace {

bool IsDense(const ClusterSpec::Job& job) {
  return job.empty() ||
         (job.begin()->first == 0 && job.rbegin()->first == static_cast<int>(job.size()) - 1);
}

std::string JobToString(const ClusterSpec::Job& job) {
  if (job.empty()) return "[]";
  const bool dense = IsDense(job);
  return absl::StrJoin(job, ",", [dense](std::string* out, const auto& task) {
    if (!dense) absl::StrAppend(out, task.first, "@");
    out->append(task.second.ToString());
  });
}

}  // namespace

int ClusterSpec::NumTasks(std::string_view job) const {
  const auto found = jobs_.find(std::string(job));
  return found == jobs_.end() ? 0 : static_cast<int>(found->second.size());
}

std::vector<TaskId> ClusterSpec::AllTasks() const {
  std::vector<TaskId> tasks;
  for (const auto& [job, addresses] : jobs_) {
    for (const auto& [index, address] : addresses) tasks.push_back({job, index});
  }
  return tasks;
}

absl::StatusOr<HostPort> ClusterSpec::Address(const TaskId& task) const {
  if (const auto job = jobs_.find(task.job); job != jobs_.end()) {
    const auto address = job->second.find(task.index);
    if (address != job->second.end()) return address->second;
  }
  return absl::NotFoundError(WhyAbsent(jobs_, task));
}

std::string ClusterSpec::ToString() const {
  return absl::StrJoin(jobs_, ";", [](std::string* out, const auto& job) {
    absl::StrAppend(out, job.first, "=", JobToString(job.second));
  });
}

std::uint64_t ClusterSpec::Id(std::string_view cluster_name) const {
  // ToString() has no NUL, so the last one separates the two without ambiguity.
  std::string text(cluster_name);
  text += '\0';
  text += ToString();
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  std::uint64_t id = 0;
  for (int i = 0; i < 8; ++i) id = id << 8 | digest[i];
  return id == 0 ? 1 : id;
}

absl::StatusOr<TaskConfig> TaskConfig::Create(ClusterSpec cluster, TaskId task) {
  if (!cluster.Address(task).ok()) {
    return absl::InvalidArgumentError(WhyAbsent(cluster.jobs(), task));
  }
  return TaskConfig{std::move(cluster), std::move(task)};
}

std::uint64_t NewIncarnation() {
  std::random_device random;
  std::uint64_t incarnation = 0;
  while (incarnation == 0) {
    incarnation = static_cast<std::uint64_t>(random()) << 32 | random();
  }
  return incarnation;
}

}  // namespace weir
