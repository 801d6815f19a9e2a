// What the values of flags may be.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>

namespace weir::cli {

/// Seconds of a deadline: 0.001 to 1,000,000 (eleven days). Neither nan nor inf, which a range of
/// CLI11 lets pass.
CLI::Validator SecondsFlag();
/// A TCP port; 0 stands for any.
CLI::Validator PortFlag();

/// A file that can be written when the work is done: better known before it is.
CLI::Validator WritableFile();

/// REQUIRES: what SecondsFlag admits.
std::chrono::milliseconds Milliseconds(double seconds);

}  // namespace weir::cli
