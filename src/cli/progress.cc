#include "cli/progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace weir::cli {

std::string FormatProgress(const Progress& progress) {
  std::string line = absl::StrFormat("step %d", progress.step);
  if (progress.step_limit >= 0) absl::StrAppendFormat(&line, " of %d", progress.step_limit);
  absl::StrAppendFormat(&line, "  %.0f steps/s", progress.steps_per_second);
  if (progress.loss) absl::StrAppendFormat(&line, "  loss %.4f", *progress.loss);
  if (progress.staleness) {
    absl::StrAppendFormat(&line, "  staleness p50 %d max %d", progress.staleness->p50,
                          progress.staleness->max);
  }
  if (progress.step_limit >= 0 && progress.steps_per_second > 0) {
    const double left =
        static_cast<double>(progress.step_limit) - static_cast<double>(progress.step);
    absl::StrAppendFormat(&line, "  %.0f s left", std::max(0.0, left / progress.steps_per_second));
  }
  return line;
}

std::chrono::milliseconds ProgressEvery(const Console& console) {
  return std::chrono::seconds(console.is_terminal() ? 1 : 5);
}

double RateMeter::Look(std::uint64_t step, TimePoint now) {
  const double seconds = std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  const std::uint64_t before = std::exchange(step_, step);
  if (step <= before || seconds <= 0) return 0;
  return static_cast<double>(step - before) / seconds;
}

}  // namespace weir::cli
