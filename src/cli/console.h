// The terminal of a launcher, or of a task that has none: lines, and one progress line that is
// redrawn below them.
#pragma once

#include <cstdio>
#include <string>

#include "base/mutex.h"

namespace weir::cli {

/// Thread-safe. On a terminal the progress line stays at the bottom and is replaced; elsewhere it
/// is a plain line.
class Console {
 public:
  Console();
  /// A line of a task's standard output, prefixed "[worker:0] ".
  void TaskOut(const std::string& task, const std::string& line);
  void TaskErr(const std::string& task, const std::string& line);
  /// A line of this process itself.
  void Say(const std::string& line);
  void Progress(const std::string& line);
  /// Takes the progress line away.
  void ClearProgress();
  bool is_terminal() const { return is_terminal_; }

 private:
  void Print(std::FILE* file, const std::string& line);

  const bool is_terminal_;
  Mutex mutex_;
  std::string progress_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::cli
