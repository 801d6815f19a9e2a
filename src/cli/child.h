// One task of a local cluster as a child process.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace weir::cli {

/// A running or ended child. It gets a process group of its own, so that signals of the terminal
/// reach it through the launcher only, and dies with the launcher however that ends. Move-only;
/// kills its group when it is destroyed.
class Child {
 public:
  /// Starts `command` with `environment` added to this process's. Its standard input is empty, its
  /// output comes through pipes, and the descriptor of its report pipe is in WEIR_REPORT_FD.
  /// NotFound when the program is not there.
  static absl::StatusOr<Child> Start(std::string task, const std::vector<std::string>& command,
                                     const std::map<std::string, std::string>& environment);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  const std::string& task() const { return task_; }
  pid_t pid() const { return pid_; }
  int stdout_fd() const { return stdout_; }
  int stderr_fd() const { return stderr_; }
  int report_fd() const { return report_; }

  bool ended() const { return ended_; }
  /// REQUIRES: ended().
  bool succeeded() const;
  /// REQUIRES: ended().
  bool was_ended_by(int signal) const;
  /// "ended with code 3", "was killed by signal 9 (Killed)". REQUIRES: ended().
  std::string HowItEnded() const;

  /// Looks whether it has ended; never blocks.
  void Reap();
  /// To its whole process group.
  void Signal(int signal) const;

 private:
  Child() = default;

  std::string task_;
  pid_t pid_ = -1;
  int stdout_ = -1;
  int stderr_ = -1;
  int report_ = -1;
  bool ended_ = false;
  int wait_status_ = 0;
};

}  // namespace weir::cli
