// SIGTERM and SIGINT as an event, taken by a thread of its own.
#pragma once

#include <functional>
#include <thread>

namespace weir::cli {

/// Blocks SIGTERM, SIGINT and SIGHUP in the calling thread and in all threads made afterwards. Call
/// first in main.
void BlockStopSignals();
/// Lets the calling thread take them again, by their default actions.
void UnblockStopSignals();

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
