// What a task tells its launcher: short lines of JSON over an inherited pipe, and one whole report
// at its end.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "store/variable_store.h"

namespace weir::cli {

/// The environment variable that holds the number of the pipe's descriptor.
inline constexpr char kReportFdVariable[] = "WEIR_REPORT_FD";

/// Variables of this name and a suffix are the runtime's, not the model's: no report has them.
inline constexpr char kOwnVariablePrefix[] = "weir/";

struct VariableReport {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t updates = 0;
  bool trainable = true;
};

/// Of one task. Times are seconds since the epoch, 0 when there is none.
struct TaskReport {
  std::string task;               // "worker:0"
  std::uint64_t steps = 0;        // training steps this task's sessions completed
  std::uint64_t global_step = 0;  // of the last of them
  std::int64_t step_limit = -1;   // at which training stops; -1: none
  double began = 0;               // when its training began
  double last_step = 0;           // when its last step completed
  std::optional<double> loss;
  bool waiting = false;                              // for other workers, before it begins
  bool serving = false;                              // it has no loop of its own
  bool final = false;                                // the last report of the task
  std::map<std::string, double> results;             // test_accuracy and the like
  std::vector<VariableReport> variables;             // only in the last report
  std::map<std::uint64_t, std::uint64_t> staleness;  // value -> how often; only in the last report
};

/// One line, without its newline. A loss or result that is infinite is read back as nan.
std::string ToJsonLine(const TaskReport& report);
/// InvalidArgument for a line that is none.
absl::StatusOr<TaskReport> ParseReport(const std::string& line);

/// The model's variables and their staleness, for a last report.
void AddStore(const store::VariableStore& store, TaskReport& report);

/// Writes lines to a pipe, whole ones, from any thread. A pipe that nobody reads any more is no
/// error: the launcher has gone.
class ReportPipe {
 public:
  /// From the variable's value; null or nonsense: a pipe that writes nothing.
  explicit ReportPipe(const char* fd_text);
  /// Whether there is a launcher that wants reports.
  bool is_open() const { return is_open_; }
  void Write(const TaskReport& report);

 private:
  bool is_open_ = false;
  Mutex mutex_;
  int fd_ WEIR_GUARDED_BY(mutex_) = -1;
};

}  // namespace weir::cli
