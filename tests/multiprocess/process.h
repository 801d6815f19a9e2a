// A real process of the product under test: its output is kept, and it does not outlive the test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace weir::testing_process {

class Process {
 public:
  /// Starts it at once, with no stop signal ignored, whatever started the tests. `environment`
  /// entries ("NAME=value") are added to this process's. It ends with the thread that made it.
  explicit Process(std::vector<std::string> command, std::vector<std::string> environment = {});
  /// Kills it and its process group if it still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal) const;
  /// The exit code, or 128 + the signal that ended it; nullopt if it still runs after `timeout`.
  std::optional<int> Wait(std::chrono::milliseconds timeout);
  bool running();
  /// Standard output and error so far.
  std::string Output() const;
  /// Blocks until `text` is in the output; false after `timeout` or when the process has ended
  /// without it.
  bool AwaitOutput(const std::string& text, std::chrono::milliseconds timeout);
  /// Its direct children.
  std::vector<pid_t> Children() const;

 private:
  std::string output_path_;
  pid_t pid_ = -1;
  std::optional<int> code_;
};

/// The path of a program of the build under test: Binary("mnist").
std::string Binary(const std::string& name);
/// How often `part` is in `text`.
int Count(const std::string& text, const std::string& part);
/// True while a process (not a zombie) of that number exists.
bool IsAlive(pid_t pid);
/// Waits until none of them is alive.
bool AwaitGone(const std::vector<pid_t>& pids, std::chrono::milliseconds timeout);
/// The value of an environment variable ("TF_CONFIG") of another process; "" if it has none.
std::string EnvironmentOf(pid_t pid, const std::string& name);
/// Addresses for the servers of a test, "127.0.0.1:P", which no other test gets. Thread-safe.
std::vector<std::string> FreeAddresses(int count);

}  // namespace weir::testing_process
