#include <ATen/Parallel.h>
#include <torch/version.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "rpc/grpc/version.h"
#include "transport/frame.h"
#include "weir/version.h"

namespace weir::cli {
namespace {

void PrintVersion(bool verbose) {
  std::printf("weir %s\n", kVersion);
  if (!verbose) return;
  std::printf("libtorch       %s\n", TORCH_VERSION);
  std::printf("gRPC           %s\n", rpc::GrpcVersion().c_str());
  std::printf("data plane     protocol %d over tcp\n",
              static_cast<int>(transport::kProtocolVersion));
  std::printf("compiler       %s\n", __VERSION__);
  std::printf("cpu            %s\n",
              at::get_parallel_info().substr(0, at::get_parallel_info().find('\n')).c_str());
}

}  // namespace

void AddVersionCommand(CLI::App& weir, int& exit_code) {
  auto verbose = std::make_shared<bool>(false);
  CLI::App* command = weir.add_subcommand("version", "Print the version");
  command->add_flag("--verbose", *verbose, "And what it is built with");
  command->callback([verbose, &exit_code] {
    PrintVersion(*verbose);
    exit_code = 0;
  });
}

}  // namespace weir::cli
