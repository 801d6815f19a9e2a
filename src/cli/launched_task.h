// One task of a launched job: its process, what it says, and what became of it.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <string>

#include "cli/child.h"
#include "cli/console.h"
#include "cli/line_buffer.h"
#include "cli/report.h"

namespace weir::cli {

/// On the launcher's thread. Its lines go to the console with its name before them.
///
///   running    ReadSome whenever its pipes hold something, Reap now and then
///   ended      Reap has said so, once; what its pipes still held has been read
class LaunchedTask {
 public:
  /// `console` (not owned) shows its lines; null shows none.
  LaunchedTask(Child child, bool is_ps, Console* console)
      : child_(std::move(child)), is_ps_(is_ps), console_(console) {}

  std::string name() const { return child_.task(); }
  /// A ps serves; any other task does so when it reports that it has no loop of its own.
  bool serves() const { return is_ps_ || (report_ && report_->serving); }
  bool has_served() const { return report_ && report_->serving; }
  /// It cannot begin before all workers are there.
  bool waits() const { return !ended_ && report_ && report_->waiting; }
  const std::optional<TaskReport>& report() const { return report_; }
  std::array<int, 3> fds() const {
    return {child_.stdout_fd(), child_.stderr_fd(), child_.report_fd()};
  }

  /// Reads once from each pipe, at most 64 KB: a task that floods its output holds up nobody.
  void ReadSome();

  /// True when it has ended since the last call.
  bool Reap();
  bool ended() const { return ended_; }
  /// It ended with success, or by the SIGTERM it was sent. REQUIRES: ended().
  bool ended_well() const;
  /// "worker:1 was killed by signal 9 (Killed)". REQUIRES: ended().
  std::string HowItEnded() const;
  /// The end of its standard error.
  const std::deque<std::string>& last_lines() const { return last_lines_; }

  /// SIGTERM, unless it has been told or has ended.
  void TellToEnd();
  bool told_to_end() const { return told_to_end_; }
  void Kill();

 private:
  void ReadRest();
  void ShowOut(const std::string& line);
  void ShowErr(const std::string& line);
  void TakeReport(const std::string& line);

  static constexpr std::size_t kLineBytesMax = 64 * 1024;
  // The last report of a task with many thousands of variables is one line.
  static constexpr std::size_t kReportBytesMax = 64 * 1024 * 1024;

  Child child_;
  const bool is_ps_;
  Console* const console_;
  LineBuffer out_{kLineBytesMax}, err_{kLineBytesMax}, reports_{kReportBytesMax};
  std::deque<std::string> last_lines_;
  std::optional<TaskReport> report_;
  bool told_to_end_ = false;
  bool ended_ = false;
};

}  // namespace weir::cli
