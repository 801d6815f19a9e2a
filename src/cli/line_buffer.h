// Splits a stream of bytes into lines.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weir::cli {

/// A stream whose lines are not ours can hold one that never ends: it is cut at a size that the
/// owner of the stream chooses.
class LineBuffer {
 public:
  explicit LineBuffer(std::size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}

  /// Complete lines of what has come so far, without newlines; a longer one in pieces.
  std::vector<std::string> Take(const char* data, std::size_t size);
  /// What is left without a newline.
  std::string TakeRest();

 private:
  const std::size_t line_bytes_max_;
  std::string pending_;  // holds no newline between calls
};

}  // namespace weir::cli
