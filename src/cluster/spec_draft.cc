#include "cluster/spec_draft.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cluster/text.h"

namespace weir {
namespace {

constexpr int kRunsNamedMax = 8;

// "0..3" for one run of indices, "1, 3..5" for more.
std::string IndexRanges(const ClusterSpec::Job& job) {
  std::vector<std::pair<int, int>> runs;
  for (const auto& [index, address] : job) {
    if (runs.empty() || index != runs.back().second + 1) runs.push_back({index, index});
    runs.back().second = index;
  }
  std::vector<std::string> texts;
  for (const auto& [first, last] : runs) {
    if (texts.size() == kRunsNamedMax) {
      texts.push_back(absl::StrCat("... ", runs.back().second));
      break;
    }
    const bool alone = first == last && runs.size() > 1;
    texts.push_back(alone ? absl::StrCat(first) : absl::StrCat(first, "..", last));
  }
  return absl::StrJoin(texts, ", ");
}

// Tells apart what a loopback address in a list can mean. A name, 127.0.0.1 and ::1 are one place;
// other numbers of 127.0.0.0/8 are used as stand-ins for machines.
enum class Reach { kLoopbackName, kLoopbackDefault, kLoopbackNumber, kNetwork };

Reach ReachOf(const HostPort& address) {
  if (address.IsLoopbackName()) return Reach::kLoopbackName;
  if (address.IsLoopbackDefault()) return Reach::kLoopbackDefault;
  return address.IsLoopback() ? Reach::kLoopbackNumber : Reach::kNetwork;
}

// Whether a task at `other` would look for a task at `address` in the wrong place.
bool Misleads(Reach address, Reach other) {
  if (other == Reach::kNetwork) return address != Reach::kNetwork;
  return other == Reach::kLoopbackNumber && address == Reach::kLoopbackName;
}

}  // namespace

std::string EntryName(const std::string& job, int index) {
  return absl::StrCat(job, "[", index, "]");
}

std::string WhyAbsent(const std::map<std::string, ClusterSpec::Job>& jobs, const TaskId& task) {
  const std::string absent =
      absl::StrCat("there is no task ", task.job, ":", task.index, " in the cluster: ");
  if (const auto job = jobs.find(task.job); job != jobs.end()) {
    if (job->second.empty()) return absl::StrCat(absent, "job ", task.job, " has no tasks");
    return absl::StrCat(absent, "job ", task.job, " has tasks ", IndexRanges(job->second));
  }
  if (jobs.empty()) return absent + "it has no jobs";
  const auto name = [](std::string* out, const auto& job) { out->append(job.first); };
  return absl::StrCat(absent, "its jobs are ", absl::StrJoin(jobs, ", ", name));
}

bool SpecDraft::AddJob(const std::string& job) {
  if (!IsName(job)) {
    AddError(
        absl::StrCat("bad job name ", Quote(job), " (expected a letter, then letters, digits, _)"));
    return false;
  }
  if (jobs_.emplace(job, ClusterSpec::Job()).second) return true;
  AddError(absl::StrCat("job ", job, " is given twice"));
  return false;
}

void SpecDraft::AddTask(const std::string& job, int index, std::string_view address) {
  if (Trim(address).empty()) return AddBrokenTask(job, index, "empty address");
  auto parsed = HostPort::Parse(address);
  if (!parsed.ok()) return AddBrokenTask(job, index, std::string(parsed.status().message()));
  if (HostPort* const task = Declare(job, index)) *task = *std::move(parsed);
}

void SpecDraft::AddBrokenTask(const std::string& job, int index, const std::string& error) {
  AddError(absl::StrCat(EntryName(job, index), ": ", error));
  Declare(job, index);
}

// The place for the address of a new task; null, with an error noted, for one that is there.
HostPort* SpecDraft::Declare(const std::string& job, int index) {
  const auto [task, added] = jobs_[job].emplace(index, HostPort());
  if (added) return &task->second;
  AddError(EntryName(job, index) + " is given twice");
  return nullptr;
}

void SpecDraft::RequireTask(const TaskId& task) {
  const auto job = jobs_.find(task.job);
  if (job == jobs_.end() || !job->second.contains(task.index)) AddError(WhyAbsent(jobs_, task));
}

absl::StatusOr<ClusterSpec> SpecDraft::Finish() && {
  if (jobs_.empty() && errors_.empty()) AddError("the cluster has no jobs");
  const std::vector<Address> addresses = ReadableAddresses();
  CheckPorts(addresses);
  CheckDuplicates(addresses);
  CheckLoopback(addresses);
  if (!errors_.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors_, "; "));
  return ClusterSpec(std::move(jobs_));
}

std::vector<SpecDraft::Address> SpecDraft::ReadableAddresses() const {
  std::vector<Address> addresses;
  for (const auto& [job, tasks] : jobs_) {
    for (const auto& [index, address] : tasks) {
      if (!address.host.empty()) addresses.push_back({TaskId{job, index}, address});
    }
  }
  return addresses;
}

void SpecDraft::CheckPorts(const std::vector<Address>& addresses) {
  for (const auto& [task, address] : addresses) {
    if (address.port != 0) continue;
    AddError(absl::StrCat(EntryName(task.job, task.index), ": port 0 in ", address.ToString(),
                          ": the others could not know which port the system picks"));
  }
}

void SpecDraft::CheckDuplicates(const std::vector<Address>& addresses) {
  std::map<std::string, std::vector<const Address*>> users;
  for (const Address& address : addresses) {
    if (address.second.port != 0) users[address.second.Key()].push_back(&address);
  }
  const auto name = [](std::string* out, const Address* user) {
    out->append(user->first.ToString());
  };
  for (const auto& [key, tasks] : users) {
    if (tasks.size() == 1) continue;
    AddError(absl::StrCat("address ", tasks.front()->second.ToString(), " is given to ",
                          absl::StrJoin(tasks, " and ", name)));
  }
}

// A loopback address means its own machine to each task that reads the list, so it may stand in a
// list only if all tasks are on that one machine.
void SpecDraft::CheckLoopback(const std::vector<Address>& addresses) {
  if (addresses.empty()) return;
  const auto reach = [](const Address& address) { return ReachOf(address.second); };
  const Address& farthest = *std::ranges::max_element(addresses, {}, reach);
  for (const Address& address : addresses) {
    if (!Misleads(reach(address), reach(farthest))) continue;
    AddError(absl::StrCat(EntryName(address.first.job, address.first.index), ": ",
                          address.second.ToString(),
                          " is a loopback address, which means its own machine to each task, but ",
                          EntryName(farthest.first.job, farthest.first.index), " is elsewhere (",
                          farthest.second.ToString(), ")"));
  }
}

}  // namespace weir
