#include "cli/production.h"

#include <ATen/Parallel.h>
#include <malloc.h>

#include <limits>

#include "rpc/grpc/control_plane.h"
#include "transport/tcp/transport.h"

namespace weir::cli {

runtime::ServerParts ProductionParts(int io_threads, int compute_threads,
                                     std::shared_ptr<Logger> logger) {
  transport::tcp::Options options;
  options.io_threads = io_threads;
  return {.transport = transport::tcp::NewTransport(options),
          .control_plane = rpc::NewGrpcControlPlane(),
          .scheduler = NewPoolScheduler(1),
          .compute = NewPoolScheduler(compute_threads),
          .logger = std::move(logger)};
}

runtime::ClientParts ProductionClientParts() {
  return {.transport = transport::tcp::NewTransport({}),
          .control_plane = rpc::NewGrpcControlPlane(),
          .scheduler = NewPoolScheduler(1)};
}

void TuneProcess(int threads) {
  at::set_num_threads(threads);
  // One arena that neither maps nor returns large blocks: see the header. The arena limit must come
  // first.
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  ::mallopt(M_TOP_PAD, 64 << 20);
}

}  // namespace weir::cli
