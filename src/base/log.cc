#include "base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weir {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

LogLevel FromSpdlog(spdlog::level::level_enum level) {
  if (level <= spdlog::level::debug) return LogLevel::kDebug;
  if (level == spdlog::level::info) return LogLevel::kInfo;
  return level == spdlog::level::warn ? LogLevel::kWarning : LogLevel::kError;
}

class FunctionSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FunctionSink(Logger::Sink function) : function_(std::move(function)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    function_(FromSpdlog(message.level),
              std::string_view(message.payload.data(), message.payload.size()));
  }
  void flush_() override {}

 private:
  const Logger::Sink function_;
};

// Not registered with spdlog: its registry is a global.
std::shared_ptr<spdlog::logger> NewLines(LogLevel level, spdlog::sink_ptr sink) {
  auto lines = std::make_shared<spdlog::logger>("", std::move(sink));
  lines->set_level(ToSpdlog(level));
  lines->set_pattern("%H:%M:%S.%e %L %v");
  lines->flush_on(spdlog::level::warn);
  return lines;
}

}  // namespace

Logger::Logger(std::shared_ptr<spdlog::logger> lines, std::string prefix)
    : lines_(std::move(lines)), prefix_(std::move(prefix)) {}

std::shared_ptr<Logger> Logger::ToStderr(LogLevel level) {
  return std::shared_ptr<Logger>(
      new Logger(NewLines(level, std::make_shared<spdlog::sinks::stderr_sink_mt>()), ""));
}

std::shared_ptr<Logger> Logger::ToSink(LogLevel level, Sink sink) {
  return std::shared_ptr<Logger>(
      new Logger(NewLines(level, std::make_shared<FunctionSink>(std::move(sink))), ""));
}

std::shared_ptr<Logger> Logger::Null() {
  return std::shared_ptr<Logger>(
      new Logger(NewLines(LogLevel::kOff, std::make_shared<spdlog::sinks::null_sink_mt>()), ""));
}

std::shared_ptr<Logger> Logger::WithPrefix(std::string_view prefix) const {
  return std::shared_ptr<Logger>(new Logger(lines_, prefix_ + std::string(prefix)));
}

bool Logger::IsEnabled(LogLevel level) const {
  return level != LogLevel::kOff && lines_->should_log(ToSpdlog(level));
}

void Logger::Log(LogLevel level, std::string_view text) const {
  if (!IsEnabled(level)) return;
  lines_->log(ToSpdlog(level), spdlog::string_view_t(prefix_ + std::string(text)));
}

std::optional<std::string> LogLimiter::Admit(std::string_view key, std::string_view text,
                                             TimePoint now) {
  MutexLock lock(mutex_);
  auto found = kinds_.find(key);
  if (found == kinds_.end()) {
    if (kinds_.size() == kKeysMax) ForgetOldest();
    kinds_.emplace(key, Kind{.written = now});
    return std::string(text);
  }
  Kind& kind = found->second;
  if (now - kind.written < interval_) {
    ++kind.suppressed;
    return std::nullopt;
  }
  kind.written = now;
  const std::uint64_t suppressed = std::exchange(kind.suppressed, 0);
  if (suppressed == 0) return std::string(text);
  return absl::StrCat(std::string(text), " (and ", suppressed, " more like it before)");
}

void LogLimiter::ForgetOldest() {
  kinds_.erase(std::min_element(kinds_.begin(), kinds_.end(), [](const auto& a, const auto& b) {
    return a.second.written < b.second.written;
  }));
}

}  // namespace weir
