// The JSON notation of a cluster, and TF_CONFIG around it.
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cluster/cluster_spec.h"
#include "cluster/spec_draft.h"
#include "cluster/text.h"

namespace weir {
namespace {

using Json = nlohmann::json;

// Of a key given twice the library keeps one silently; which one the user meant nobody knows.
class DuplicateKeyCheck {
 public:
  explicit DuplicateKeyCheck(SpecDraft& draft) : draft_(draft) {}

  bool operator()(int, Json::parse_event_t event, const Json& value) {
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) {
        draft_.AddError(absl::StrCat("key ", Quote(key), " is given twice"));
      }
    }
    return true;
  }

 private:
  SpecDraft& draft_;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
};

absl::StatusOr<Json> ParseText(std::string_view text, SpecDraft& draft) {
  Json json;
  DuplicateKeyCheck check(draft);
  WEIR_RETURN_IF_ERROR(CatchAs(absl::StatusCode::kInvalidArgument, "not JSON", [&] {
    json = Json::parse(text.begin(), text.end(), std::ref(check));
  }));
  return json;
}

std::string ExpectedType(const char* expected, const Json& found) {
  return absl::StrCat("expected ", expected, ", found ", found.type_name());
}

void ReadTask(const std::string& job, int index, const Json& address, SpecDraft& draft) {
  if (address.is_string()) {
    draft.AddTask(job, index, address.get_ref<const std::string&>());
  } else {
    draft.AddBrokenTask(job, index, ExpectedType("an address", address));
  }
}

void ReadSparseTasks(const std::string& job, const Json& tasks, SpecDraft& draft) {
  for (const auto& [key, address] : tasks.items()) {
    if (const auto index = ParseIndex(key)) {
      ReadTask(job, *index, address, draft);
    } else {
      draft.AddError(absl::StrCat("bad task index ", Quote(key), " in job ", job));
    }
  }
}

void ReadJob(const std::string& job, const Json& tasks, SpecDraft& draft) {
  if (!draft.AddJob(job)) return;
  if (tasks.is_object()) return ReadSparseTasks(job, tasks, draft);
  if (!tasks.is_array()) {
    return draft.AddError(
        absl::StrCat("job ", job, ": ", ExpectedType("a list or a map of addresses", tasks)));
  }
  int index = 0;
  for (const Json& address : tasks) ReadTask(job, index++, address, draft);
}

void ReadCluster(const Json& cluster, SpecDraft& draft) {
  if (!cluster.is_object()) {
    return draft.AddError("cluster: " + ExpectedType("an object of jobs", cluster));
  }
  for (const auto& [job, tasks] : cluster.items()) ReadJob(job, tasks, draft);
}

const Json& Member(const Json& object, const char* key) {
  static const Json kAbsent;
  const auto found = object.find(key);
  return found == object.end() ? kAbsent : *found;
}

// The original turns the index into a number whatever it is, and launchers rely on it: "1" counts.
std::optional<int> ReadIndex(const Json& index) {
  if (index.is_string()) return ParseIndex(index.get_ref<const std::string&>());
  if (index.is_number_integer()) return ParseIndex(index.dump());
  return std::nullopt;
}

std::optional<TaskId> ReadTaskId(const Json& task, SpecDraft& draft) {
  if (!task.is_object()) {
    draft.AddError("task: " + ExpectedType("an object with type and index", task));
    return std::nullopt;
  }
  const Json& type = Member(task, "type");
  const Json& index = Member(task, "index");
  if (!type.is_string()) draft.AddError("task.type: " + ExpectedType("the name of a job", type));
  const auto number = ReadIndex(index);
  if (!number) draft.AddError("task.index: expected a number from 0");
  if (!type.is_string() || !number) return std::nullopt;
  return TaskId{type.get<std::string>(), *number};
}

}  // namespace

absl::StatusOr<ClusterSpec> ClusterSpec::ParseJson(std::string_view text) {
  SpecDraft draft;
  WEIR_ASSIGN_OR_RETURN(const Json json, ParseText(text, draft));
  ReadCluster(json, draft);
  return std::move(draft).Finish();
}

absl::StatusOr<TaskConfig> TaskConfig::ParseTfConfig(std::string_view text) {
  SpecDraft draft;
  WEIR_ASSIGN_OR_RETURN(const Json json, ParseText(text, draft));
  if (!json.is_object()) {
    return absl::InvalidArgumentError("expected an object with cluster and task");
  }
  ReadCluster(Member(json, "cluster"), draft);
  const auto task = ReadTaskId(Member(json, "task"), draft);
  if (task) draft.RequireTask(*task);
  WEIR_ASSIGN_OR_RETURN(ClusterSpec cluster, std::move(draft).Finish());
  return Create(std::move(cluster), *task);
}

}  // namespace weir
