#include "cli/console.h"

#include <unistd.h>

namespace weir::cli {

Console::Console() : is_terminal_(::isatty(STDERR_FILENO) == 1) {}

void Console::TaskOut(const std::string& task, const std::string& line) {
  Print(stdout, "[" + task + "] " + line);
}
void Console::TaskErr(const std::string& task, const std::string& line) {
  Print(stderr, "[" + task + "] " + line);
}
void Console::Say(const std::string& line) {
  Print(stderr, line);
}

void Console::Print(std::FILE* file, const std::string& line) {
  MutexLock lock(mutex_);
  if (!progress_.empty()) std::fputs("\r\033[K", stderr);
  std::fprintf(file, "%s\n", line.c_str());
  std::fflush(file);
  if (!progress_.empty()) std::fputs(progress_.c_str(), stderr);
}

void Console::Progress(const std::string& line) {
  if (!is_terminal_) return Say(line);
  MutexLock lock(mutex_);
  progress_ = line;
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
}

void Console::ClearProgress() {
  MutexLock lock(mutex_);
  if (progress_.empty()) return;
  progress_.clear();
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

}  // namespace weir::cli
