#include "cli/summary.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weir/strategy.h"

namespace weir::cli {
namespace {

// Keeps the order in which fields are written: people read the file too.
using Json = nlohmann::ordered_json;

bool IsPs(const std::string& task) {
  return task.rfind("ps:", 0) == 0;
}

/// "worker:2" comes before "worker:10".
std::pair<std::string, int> TaskOrder(const TaskSummary& task) {
  const std::size_t colon = task.task.rfind(':');
  int index = 0;
  if (colon != std::string::npos &&
      !absl::SimpleAtoi(absl::string_view(task.task).substr(colon + 1), &index))
    index = 0;
  return {task.task.substr(0, colon), index};
}

TaskSummary SummarizeTask(const TaskReport& report) {
  TaskSummary task{
      .task = report.task, .steps = report.steps, .bytes = 0, .variables = report.variables};
  for (const VariableReport& variable : report.variables) task.bytes += variable.bytes;
  return task;
}

/// Nearest rank, as the store's histograms.
std::uint64_t Quantile(const std::map<std::uint64_t, std::uint64_t>& counts, std::uint64_t total,
                       std::uint64_t percent) {
  const std::uint64_t rank = (total * percent + 99) / 100;
  std::uint64_t seen = 0;
  for (const auto& [value, count] : counts) {
    seen += count;
    if (seen >= rank && seen > 0) return value;
  }
  return 0;
}

StalenessQuantiles Quantiles(const std::map<std::uint64_t, std::uint64_t>& counts) {
  std::uint64_t total = 0;
  for (const auto& [value, count] : counts) total += count;
  return {.p50 = Quantile(counts, total, 50),
          .p99 = Quantile(counts, total, 99),
          .max = counts.empty() ? 0 : counts.rbegin()->first};
}

Json TaskToJson(const TaskSummary& task, bool with_steps) {
  Json json = {{"task", task.task}};
  if (with_steps) json["steps"] = task.steps;
  if (with_steps && task.variables.empty()) return json;
  json["bytes"] = task.bytes;
  json["variables"] = Json::array();
  for (const VariableReport& variable : task.variables) {
    json["variables"].push_back(
        {{"name", variable.name}, {"bytes", variable.bytes}, {"updates", variable.updates}});
  }
  return json;
}

}  // namespace

Summary Summarize(const std::vector<TaskReport>& reports, double seconds) {
  Summary summary;
  summary.seconds = seconds;
  std::map<std::uint64_t, std::uint64_t> staleness;
  std::uint64_t known_steps = 0;
  double began = 0;  // the first of them
  double last_step = 0;
  for (const TaskReport& report : reports) {
    (IsPs(report.task) ? summary.ps : summary.workers).push_back(SummarizeTask(report));
    summary.global_steps += report.steps;
    known_steps = std::max(known_steps, report.global_step);
    for (const VariableReport& variable : report.variables) {
      if (variable.name == kGlobalStepName) known_steps = std::max(known_steps, variable.updates);
    }
    if (report.task == "worker:0") summary.results = report.results;
    for (const auto& [value, count] : report.staleness) staleness[value] += count;
    if (report.steps == 0) continue;
    began = began == 0 ? report.began : std::min(began, report.began);
    last_step = std::max(last_step, report.last_step);
  }
  summary.staleness = Quantiles(staleness);
  // A task that was killed has not told of its last steps.
  summary.global_steps = std::max(summary.global_steps, known_steps);
  if (last_step > began)
    summary.steps_per_second = static_cast<double>(summary.global_steps) / (last_step - began);
  const auto by_task = [](const TaskSummary& a, const TaskSummary& b) {
    return TaskOrder(a) < TaskOrder(b);
  };
  std::sort(summary.workers.begin(), summary.workers.end(), by_task);
  std::sort(summary.ps.begin(), summary.ps.end(), by_task);
  return summary;
}

std::string SummaryToJson(const Summary& summary) {
  Json json = Json::object();
  for (const auto& [name, value] : summary.results) json[name] = value;
  json["global_steps"] = summary.global_steps;
  json["steps_per_second"] = summary.steps_per_second;
  json["seconds"] = summary.seconds;
  json["workers"] = Json::array();
  for (const TaskSummary& task : summary.workers)
    json["workers"].push_back(TaskToJson(task, /*with_steps=*/true));
  json["ps"] = Json::array();
  for (const TaskSummary& task : summary.ps)
    json["ps"].push_back(TaskToJson(task, /*with_steps=*/false));
  json["staleness"] = {{"p50", summary.staleness.p50},
                       {"p99", summary.staleness.p99},
                       {"max", summary.staleness.max}};
  return json.dump(2) + "\n";
}

std::string SummaryToText(const Summary& summary) {
  std::string text =
      absl::StrFormat("%d training steps in %.1f s, %.0f steps/s", summary.global_steps,
                      summary.seconds, summary.steps_per_second);
  for (const auto& [name, value] : summary.results)
    absl::StrAppendFormat(&text, ", %s %.4f", name, value);
  absl::StrAppendFormat(&text, "\nstaleness of the gradients: p50 %d, p99 %d, max %d updates\n",
                        summary.staleness.p50, summary.staleness.p99, summary.staleness.max);
  absl::StrAppendFormat(&text, "  %-12s %10s %8s %14s\n", "task", "steps", "share",
                        "variable bytes");
  const auto row = [&](const TaskSummary& task, bool trains) {
    const double share = summary.global_steps == 0 ? 0
                                                   : 100.0 * static_cast<double>(task.steps) /
                                                         static_cast<double>(summary.global_steps);
    absl::StrAppendFormat(&text, "  %-12s %10s %8s %14d\n", task.task,
                          trains ? absl::StrCat(task.steps) : "-",
                          trains ? absl::StrFormat("%.1f %%", share) : "-", task.bytes);
  };
  for (const TaskSummary& task : summary.ps) row(task, /*trains=*/false);
  for (const TaskSummary& task : summary.workers) row(task, /*trains=*/true);
  return text;
}

absl::Status WriteSummary(const std::string& path, const Summary& summary) {
  const std::string temporary = path + ".tmp";
  std::ofstream file(temporary);
  file << SummaryToJson(summary);
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot write the summary to '", path, "': ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace weir::cli
