// The notation of --cluster: 'ps=h:p,h:p;worker=1@h:p'.
#include <optional>

#include "absl/strings/str_cat.h"
#include "cluster/cluster_spec.h"
#include "cluster/spec_draft.h"
#include "cluster/text.h"

namespace weir {
namespace {

constexpr char kNoTasks[] = "[]";

// An index before "@" is an error when it is no number; nullopt when there is none.
std::optional<int> TakeIndex(std::string_view& entry, const std::string& job, SpecDraft& draft) {
  const std::size_t at = entry.find('@');
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view text = Trim(entry.substr(0, at));
  entry.remove_prefix(at + 1);
  const auto index = ParseIndex(text);
  if (!index) draft.AddError(absl::StrCat("bad task index ", Quote(text), " in job ", job));
  return index;
}

void ReadTasks(const std::string& job, std::string_view text, SpecDraft& draft) {
  if (Trim(text) == kNoTasks) return;
  const bool indexed = text.find('@') != std::string_view::npos;
  int position = 0;
  for (std::string_view entry : Split(text, ',')) {
    std::optional<int> index = position++;
    if (indexed) {
      if (entry.find('@') == std::string_view::npos) {
        draft.AddError(absl::StrCat(
            "job ", job, " gives an index to some tasks only: ", Quote(Trim(entry)), " has none"));
        continue;
      }
      index = TakeIndex(entry, job, draft);
    }
    if (index) draft.AddTask(job, *index, entry);
  }
}

void ReadJob(std::string_view text, SpecDraft& draft) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    draft.AddError(absl::StrCat("expected job=host:port,... but found ", Quote(Trim(text))));
    return;
  }
  const std::string job(Trim(text.substr(0, equals)));
  if (draft.AddJob(job)) ReadTasks(job, text.substr(equals + 1), draft);
}

}  // namespace

absl::StatusOr<ClusterSpec> ClusterSpec::ParseFlag(std::string_view text) {
  SpecDraft draft;
  for (const std::string_view job : Split(text, ';')) {
    if (!Trim(job).empty()) ReadJob(job, draft);
  }
  return std::move(draft).Finish();
}

}  // namespace weir
