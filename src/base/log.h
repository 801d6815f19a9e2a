// Log lines. A Logger is handed to whoever needs one; there is no global.
//
// Who first decides that something is an error logs it, callers pass the status on silently.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/scheduler.h"

namespace spdlog {
class logger;
}  // namespace spdlog

namespace weir {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

/// Writes lines such as "14:03:22.104 W [worker:1] the text". Thread-safe; never null when passed
/// on: one that writes nothing is Logger::Null().
class Logger {
 public:
  /// Receives a line's level and text, prefix included, time not. Called by one thread at a time.
  using Sink = std::function<void(LogLevel, std::string_view)>;

  static std::shared_ptr<Logger> ToStderr(LogLevel level);
  /// For tests, and for those who share the terminal with a progress line.
  static std::shared_ptr<Logger> ToSink(LogLevel level, Sink sink);
  static std::shared_ptr<Logger> Null();

  /// The same sink and level with `prefix`, such as "[worker:1] ", before each text; it follows the
  /// prefixes this logger has.
  std::shared_ptr<Logger> WithPrefix(std::string_view prefix) const;

  /// False when a line of `level` would be dropped: ask before a costly text is built.
  bool IsEnabled(LogLevel level) const;

  void Log(LogLevel level, std::string_view text) const;
  void Debug(std::string_view text) const { Log(LogLevel::kDebug, text); }
  void Info(std::string_view text) const { Log(LogLevel::kInfo, text); }
  void Warning(std::string_view text) const { Log(LogLevel::kWarning, text); }
  void Error(std::string_view text) const { Log(LogLevel::kError, text); }

 private:
  Logger(std::shared_ptr<spdlog::logger> lines, std::string prefix);

  const std::shared_ptr<spdlog::logger> lines_;
  const std::string prefix_;
};

/// Keeps a warning that repeats from filling the log: the first is written, those that follow
/// within `interval` are counted, and the next one after it is written with their number. At most
/// kKeysMax kinds are told apart; the one written longest ago is forgotten first. Thread-safe.
class LogLimiter {
 public:
  static constexpr std::size_t kKeysMax = 1000;

  explicit LogLimiter(Duration interval) : interval_(interval) {}

  /// `text` to write now, perhaps with a count added, or nothing. `key` says which texts are the
  /// same warning. Time is the caller's: Scheduler::Now().
  std::optional<std::string> Admit(std::string_view key, std::string_view text, TimePoint now);

 private:
  struct Kind {
    TimePoint written;
    std::uint64_t suppressed = 0;
  };

  void ForgetOldest() WEIR_REQUIRES(mutex_);

  const Duration interval_;
  Mutex mutex_;
  std::map<std::string, Kind, std::less<>> kinds_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir
