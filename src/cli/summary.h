// What a whole job did, for people and as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/report.h"

namespace weir::cli {

struct StalenessQuantiles {
  std::uint64_t p50 = 0, p99 = 0, max = 0;
};

struct TaskSummary {
  std::string task;
  std::uint64_t steps = 0;
  std::uint64_t bytes = 0;  // of its variables
  std::vector<VariableReport> variables;
};

struct Summary {
  std::map<std::string, double> results;  // of worker 0; test_accuracy and the like
  std::uint64_t global_steps = 0;         // completed training steps of all workers
  /// From the first worker's beginning to the last completed step. Those who wait for each other
  /// begin together; where they don't, the steps before the last one came are among those counted,
  /// so their time must be too.
  double steps_per_second = 0;
  double seconds = 0;  // of the whole job
  std::vector<TaskSummary> workers;
  std::vector<TaskSummary> ps;
  StalenessQuantiles staleness;
};

/// From the last report of each task, in any order; `seconds` is the job's.
Summary Summarize(const std::vector<TaskReport>& reports, double seconds);

/// The fields of the summary file: test_accuracy (and other results), global_steps,
/// steps_per_second, seconds, workers[].{task,steps},
/// ps[].{task,bytes,variables[].{name,bytes,updates}}, staleness.{p50,p99,max}. A worker that owns
/// variables has bytes and variables too.
std::string SummaryToJson(const Summary& summary);
/// A few lines and a table.
std::string SummaryToText(const Summary& summary);
/// Writes the JSON under a temporary name and renames it.
absl::Status WriteSummary(const std::string& path, const Summary& summary);

}  // namespace weir::cli
