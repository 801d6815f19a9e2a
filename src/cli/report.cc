#include "cli/report.h"

#include <fcntl.h>
#include <unistd.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "store/staleness.h"

namespace weir::cli {
namespace {

using Json = nlohmann::json;

Json VariableToJson(const VariableReport& variable) {
  return {{"name", variable.name},
          {"bytes", variable.bytes},
          {"updates", variable.updates},
          {"trainable", variable.trainable}};
}

/// JSON has no number for what is none: it was written as null.
double NumberFromJson(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

VariableReport VariableFromJson(const Json& json) {
  return {.name = json.at("name"),
          .bytes = json.at("bytes"),
          .updates = json.at("updates"),
          .trainable = json.at("trainable")};
}

}  // namespace

std::string ToJsonLine(const TaskReport& report) {
  Json json = {{"task", report.task},
               {"steps", report.steps},
               {"global_step", report.global_step},
               {"began", report.began},
               {"last_step", report.last_step},
               {"waiting", report.waiting},
               {"serving", report.serving},
               {"final", report.final},
               {"results", report.results},
               {"variables", Json::array()},
               {"staleness", Json::array()}};
  json["step_limit"] = report.step_limit;
  if (report.loss) json["loss"] = *report.loss;
  for (const VariableReport& variable : report.variables)
    json["variables"].push_back(VariableToJson(variable));
  for (const auto& [value, count] : report.staleness) json["staleness"].push_back({value, count});
  return json.dump();
}

absl::StatusOr<TaskReport> ParseReport(const std::string& line) {
  try {
    const Json json = Json::parse(line);
    TaskReport report;
    report.task = json.at("task");
    report.steps = json.at("steps");
    report.global_step = json.at("global_step");
    report.step_limit = json.at("step_limit");
    report.began = json.at("began");
    report.last_step = json.at("last_step");
    report.waiting = json.at("waiting");
    report.serving = json.at("serving");
    report.final = json.at("final");
    for (const auto& [name, value] : json.at("results").items())
      report.results[name] = NumberFromJson(value);
    if (json.contains("loss")) report.loss = NumberFromJson(json.at("loss"));
    for (const Json& variable : json.at("variables"))
      report.variables.push_back(VariableFromJson(variable));
    for (const Json& entry : json.at("staleness"))
      report.staleness[entry.at(0)] += entry.at(1).get<std::uint64_t>();
    return report;
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(std::string("not a task's report: ") + error.what());
  }
}

void AddStore(const store::VariableStore& store, TaskReport& report) {
  for (const auto& variable : store.All()) {
    if (variable->def().name.rfind(kOwnVariablePrefix, 0) == 0) continue;
    report.variables.push_back({.name = variable->def().name,
                                .bytes = variable->bytes(),
                                .updates = variable->version(),
                                .trainable = variable->def().trainable});
    const auto counts = variable->staleness().Counts();
    for (std::size_t bucket = 0; bucket < counts.size(); ++bucket) {
      if (counts[bucket] == 0) continue;
      report.staleness[store::StalenessHistogram::UpperEnd(bucket)] += counts[bucket];
    }
  }
}

ReportPipe::ReportPipe(const char* fd_text) {
  int fd = -1;
  if (fd_text == nullptr || !absl::SimpleAtoi(fd_text, &fd)) return;
  if (::fcntl(fd, F_GETFD) == -1) return;  // not inherited
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  is_open_ = true;
  MutexLock lock(mutex_);
  fd_ = fd;
}

void ReportPipe::Write(const TaskReport& report) {
  if (!is_open_) return;
  const std::string line = ToJsonLine(report) + "\n";
  MutexLock lock(mutex_);
  if (fd_ < 0) return;
  std::size_t written = 0;
  while (written < line.size()) {
    const ssize_t n = ::write(fd_, line.data() + written, line.size() - written);
    if (n <= 0) {
      fd_ = -1;
      return;
    }
    written += static_cast<std::size_t>(n);
  }
}

}  // namespace weir::cli
