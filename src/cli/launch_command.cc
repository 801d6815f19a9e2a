#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/flag_checks.h"
#include "cli/launch.h"

namespace weir::cli {
namespace {

constexpr int kTasksMax = 10'000;

}  // namespace

int ReportStatus(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "weir: %s\n", status.ToString().c_str());
  return 1;
}

void AddLaunchCommand(CLI::App& weir, int& exit_code) {
  auto options = std::make_shared<LaunchOptions>();
  CLI::App* command = weir.add_subcommand(
      "launch",
      "Run a local cluster of one program: weir launch --ps 1 --workers 2 -- ./program arguments");
  command->add_option("--ps", options->ps, "Tasks that own the variables")
      ->capture_default_str()
      ->check(CLI::Range(0, kTasksMax));
  command->add_option("--workers", options->workers, "Tasks that train")
      ->capture_default_str()
      ->check(CLI::Range(1, kTasksMax));
  command->add_option("--summary", options->summary, "Write what happened to this file, as JSON")
      ->check(WritableFile());
  command
      ->add_option("--stop-timeout", options->stop_timeout_s,
                   "Seconds for an orderly end before what is left is killed")
      ->capture_default_str()
      ->check(SecondsFlag());
  command->add_flag("--dry-run", options->dry_run,
                    "Print the spec, and each task's address, environment and command line; start "
                    "nothing");
  command->add_flag("--no-progress", options->no_progress, "No progress line");
  command->add_option("command", options->command, "The program and its arguments, after --")
      ->required();
  command->callback([options, &exit_code] {
    const auto result = Launch(*options);
    exit_code = result.ok() ? result->exit_code : ReportStatus(result.status());
  });
}

}  // namespace weir::cli
