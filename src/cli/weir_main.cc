// The weir command.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>

#include "cli/commands.h"

namespace weir::cli {
namespace {

int Main(int argc, char** argv) {
  // These two are programs of a cluster themselves: their flags are those of every Weir program.
  if (argc > 1 && std::strcmp(argv[1], "serve") == 0) return Serve(argc - 1, argv + 1);
  if (argc > 1 && std::strcmp(argv[1], "null-step-task") == 0)
    return RunNullStepTask(argc - 1, argv + 1);

  CLI::App app(
      "Trains models over many processes and machines.\n\n"
      "  weir serve    runs a task that only serves variables; `weir serve --help` lists its "
      "flags");
  app.name("weir");
  app.require_subcommand(1);
  int exit_code = 0;
  AddLaunchCommand(app, exit_code);
  AddStatusCommand(app, exit_code);
  AddBenchCommand(app, exit_code);
  AddVersionCommand(app, exit_code);
  CLI11_PARSE(app, argc, argv);
  return exit_code;
}

}  // namespace
}  // namespace weir::cli

int main(int argc, char** argv) {
  return weir::cli::Main(argc, argv);
}
