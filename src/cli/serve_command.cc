#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "weir/job.h"

namespace weir::cli {

namespace {

// Alone it would be a cluster of its own, which nobody knows.
bool NamesARole(int argc, char** argv) {
  const auto names_cluster = [](const char* argument) {
    return std::string_view(argument).starts_with("--cluster");
  };
  return std::getenv("TF_CONFIG") != nullptr || std::any_of(argv + 1, argv + argc, names_cluster);
}

}  // namespace

int Serve(int argc, char** argv) {
  if (Job::WantsHelp(argc, argv)) {
    std::printf("weir serve: runs one task of a cluster until it is told to end.\n\n%s",
                Job::FlagsHelp().c_str());
    return 0;
  }
  if (!NamesARole(argc, argv)) {
    return ReportStatus(
        absl::InvalidArgumentError("weir serve: which task of which cluster? Say --cluster "
                                   "'ps=h:p;worker=h:p' --job ps --task "
                                   "0, or set TF_CONFIG"));
  }
  auto job = Job::FromCommandLine(&argc, argv);
  if (!job.ok()) return ReportStatus(job.status());
  if (argc > 1)
    return ReportStatus(
        absl::InvalidArgumentError(std::string("weir serve does not know '") + argv[1] + "'"));
  return job->Serve();
}

}  // namespace weir::cli
