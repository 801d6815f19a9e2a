// The signals that ask a process to end, SIGTERM, SIGINT and SIGHUP, as events.
//
// One that the parent has set to be ignored stays ignored: nohup does so with SIGHUP, a shell with
// SIGINT of what it starts in the background.
#pragma once

#include <functional>
#include <thread>

namespace weir::cli {

/// Blocks the stop signals in the calling thread and in all threads made afterwards. Call
/// first in main.
void BlockStopSignals();
/// Lets the calling thread take them again, by their default actions.
void UnblockStopSignals();

/// A descriptor that delivers them, as signalfd(2): blocks no reader, closed by exec, the caller's
/// to close. REQUIRES: as SignalWatcher.
int OpenStopSignals();

/// Calls `on_signal(number)` for each stop signal until it is destroyed. REQUIRES:
/// BlockStopSignals() was called before any other thread was made.
class SignalWatcher {
 public:
  explicit SignalWatcher(std::function<void(int)> on_signal);
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

 private:
  void Run();

  const std::function<void(int)> on_signal_;
  int stop_fd_;
  std::thread thread_;
};

}  // namespace weir::cli
