// The line that says how far training is, as a launcher and a task of its own show it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/console.h"
#include "cli/staleness_poll.h"

namespace weir::cli {

struct Progress {
  std::uint64_t step = 0;
  std::int64_t step_limit = -1;  // -1: none
  double steps_per_second = 0;   // of all workers together
  std::optional<double> loss = {};
  std::optional<StalenessPoll::Answer> staleness = {};

  bool is_over() const { return step_limit >= 0 && step >= static_cast<std::uint64_t>(step_limit); }
};

/// "step 1200 of 6000  843 steps/s  loss 0.1234  staleness p50 1 max 4  6 s left".
std::string FormatProgress(const Progress& progress);

/// How often the line is shown: every second on a terminal, where it is redrawn in place, every
/// 5 s elsewhere.
std::chrono::milliseconds ProgressEvery(const Console& console);

/// Steps per second between one look and the next. One thread.
class RateMeter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit RateMeter(TimePoint start) : last_(start) {}
  /// Since the last look, or the start.
  double Look(std::uint64_t step, TimePoint now);

 private:
  TimePoint last_;
  std::uint64_t step_ = 0;
};

}  // namespace weir::cli
