#include "cli/flag_checks.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
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

std::string CheckWritable(const std::string& path) {
  const std::filesystem::path file(path);
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code ignored;
  if (path.empty() || std::filesystem::is_directory(file, ignored))
    return "'" + path + "' is no name for a file";
  if (!std::filesystem::is_directory(folder, ignored))
    return "'" + path + "': there is no folder '" + folder.string() + "'";
  const bool exists = std::filesystem::exists(file, ignored);
  if (::access(exists ? file.c_str() : folder.c_str(), W_OK) != 0)
    return "'" + path + "' cannot be written: " + std::strerror(errno);
  return "";
}

}  // namespace

CLI::Validator SecondsFlag() {
  return {CheckSeconds, "in [0.001 - 1000000]", "seconds"};
}

CLI::Validator WritableFile() {
  return {CheckWritable, "", "file"};
}

CLI::Validator PortFlag() {
  return CLI::Range(0, 65535);
}

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

}  // namespace weir::cli
