// The subcommands of `weir`. Each adds itself to the application and, when it was chosen, sets the
// exit code.
#pragma once

#include "absl/status/status.h"

namespace CLI {
class App;
}  // namespace CLI

namespace weir::cli {

/// `weir launch`: a local cluster of one program.
void AddLaunchCommand(CLI::App& weir, int& exit_code);
/// `weir status`: what the tasks of a cluster are doing.
void AddStatusCommand(CLI::App& weir, int& exit_code);
/// `weir bench`: measures this machine.
void AddBenchCommand(CLI::App& weir, int& exit_code);
/// `weir version`.
void AddVersionCommand(CLI::App& weir, int& exit_code);

/// `weir serve` takes the flags of every Weir program and serves until it is told to end; returns
/// the exit code.
int Serve(int argc, char** argv);

/// One task of `weir bench null-step`, started by that command for each task of its cluster;
/// returns the exit code.
int RunNullStepTask(int argc, char** argv);

/// Prints a status that is not OK; 0 or 1.
int ReportStatus(const absl::Status& status);

}  // namespace weir::cli
