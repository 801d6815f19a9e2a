#include "cli/flag_checks.h"

#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"

namespace weir::cli {
namespace {

constexpr double kSecondsMin = 1e-3;
constexpr double kSecondsMax = 1e6;

std::string CheckSeconds(const std::string& text) {
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds) && seconds >= kSecondsMin && seconds <= kSecondsMax)
    return "";
  return "'" + text + "': expected seconds, from 0.001 to 1000000";
}

}  // namespace

CLI::Validator SecondsFlag() {
  return {CheckSeconds, "in [0.001 - 1000000]", "seconds"};
}

CLI::Validator PortFlag() {
  return CLI::Range(0, 65535);
}

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

}  // namespace weir::cli
