#include "cli/launch_plan.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/local_cluster.h"
#include "cli/report.h"

namespace weir::cli {
namespace {

constexpr std::string_view kPlainCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";

std::string Quoted(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(kPlainCharacters) == std::string::npos;
  return plain ? word : absl::StrCat("'", absl::StrReplaceAll(word, {{"'", R"('\'')"}}), "'");
}

std::string CommandLine(const std::vector<std::string>& command) {
  return absl::StrJoin(command, " ",
                       [](std::string* out, const auto& word) { out->append(Quoted(word)); });
}

}  // namespace

std::map<std::string, std::string> TaskEnvironment(const ClusterSpec& cluster, const TaskId& task) {
  return {{"TF_CONFIG", TfConfig(cluster, task)}};
}

std::string DescribeLaunch(const ClusterSpec& cluster, const std::vector<std::string>& command) {
  std::string text = absl::StrCat("cluster '", cluster.ToString(), "'\n");
  for (const TaskId& task : cluster.AllTasks()) {
    absl::StrAppend(&text, "\n", task.ToString(), " at ", cluster.Address(task)->ToString(), "\n");
    for (const auto& [name, value] : TaskEnvironment(cluster, task))
      absl::StrAppend(&text, "  ", name, "=", Quoted(value), " \\\n");
    absl::StrAppend(&text, "  ", CommandLine(command), "\n");
  }
  absl::StrAppend(&text, "\nNothing was started. A launch finds free ports anew, adds ",
                  kReportFdVariable,
                  " (a pipe for reports) to each environment,\nand data planes listen on any free "
                  "port, which tasks tell each other.\n");
  return text;
}

}  // namespace weir::cli
