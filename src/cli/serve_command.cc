#include <cstdio>
#include <string>

#include "cli/commands.h"
#include "weir/job.h"

namespace weir::cli {

int Serve(int argc, char** argv) {
  if (Job::WantsHelp(argc, argv)) {
    std::printf("weir serve: runs one task of a cluster until it is told to end.\n\n%s",
                Job::FlagsHelp().c_str());
    return 0;
  }
  auto job = Job::FromCommandLine(&argc, argv);
  if (!job.ok()) return ReportStatus(job.status());
  if (argc > 1)
    return ReportStatus(
        absl::InvalidArgumentError(std::string("weir serve does not know '") + argv[1] + "'"));
  return job->Serve();
}

}  // namespace weir::cli
