#include "cli/launched_task.h"

#include <signal.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace weir::cli {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;
constexpr std::size_t kPipeBytesMax = 1024 * 1024;  // of an unprivileged process: pipe(7)
constexpr std::size_t kLastLines = 20;

/// One read; the descriptor does not block. Returns the bytes that came.
template <typename Function>
std::size_t ReadOnce(int fd, LineBuffer& lines, Function&& on_line) {
  char data[kReadBytes];
  const ssize_t size = ::read(fd, data, sizeof(data));
  if (size <= 0) return 0;
  for (const std::string& line : lines.Take(data, static_cast<std::size_t>(size))) on_line(line);
  return static_cast<std::size_t>(size);
}

/// What a pipe held when its writer ended, and not what somebody who inherited it goes on writing.
template <typename Function>
void Drain(int fd, LineBuffer& lines, Function&& on_line) {
  std::size_t drained = 0;
  while (drained < kPipeBytesMax) {
    const std::size_t size = ReadOnce(fd, lines, on_line);
    if (size == 0) break;
    drained += size;
  }
  if (const std::string rest = lines.TakeRest(); !rest.empty()) on_line(rest);
}

}  // namespace

void LaunchedTask::ReadSome() {
  ReadOnce(child_.stdout_fd(), out_, [this](const std::string& line) { ShowOut(line); });
  ReadOnce(child_.stderr_fd(), err_, [this](const std::string& line) { ShowErr(line); });
  ReadOnce(child_.report_fd(), reports_, [this](const std::string& line) { TakeReport(line); });
}

void LaunchedTask::ReadRest() {
  Drain(child_.stdout_fd(), out_, [this](const std::string& line) { ShowOut(line); });
  Drain(child_.stderr_fd(), err_, [this](const std::string& line) { ShowErr(line); });
  Drain(child_.report_fd(), reports_, [this](const std::string& line) { TakeReport(line); });
}

void LaunchedTask::ShowOut(const std::string& line) {
  if (console_ != nullptr) console_->TaskOut(name(), line);
}

void LaunchedTask::ShowErr(const std::string& line) {
  if (console_ != nullptr) console_->TaskErr(name(), line);
  last_lines_.push_back(line);
  if (last_lines_.size() > kLastLines) last_lines_.pop_front();
}

void LaunchedTask::TakeReport(const std::string& line) {
  auto report = ParseReport(line);
  if (report.ok()) {
    report_ = *std::move(report);
  } else {
    ShowErr(std::string(report.status().message()));
  }
}

bool LaunchedTask::Reap() {
  if (ended_) return false;
  child_.Reap();
  if (!child_.ended()) return false;
  ended_ = true;
  ReadRest();
  return true;
}

bool LaunchedTask::ended_well() const {
  return child_.succeeded() || (told_to_end_ && child_.was_ended_by(SIGTERM));
}

std::string LaunchedTask::HowItEnded() const {
  return absl::StrCat(name(), " ", child_.HowItEnded());
}

void LaunchedTask::TellToEnd() {
  if (ended_ || std::exchange(told_to_end_, true)) return;
  child_.Signal(SIGTERM);
}

void LaunchedTask::Kill() {
  told_to_end_ = true;
  if (!ended_) child_.Signal(SIGKILL);
}

}  // namespace weir::cli
