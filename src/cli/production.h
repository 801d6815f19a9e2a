// What a real process runs on: gRPC, TCP and pools of threads. The only place that names them all.
#pragma once

#include <memory>

#include "base/log.h"
#include "runtime/remote_session.h"
#include "runtime/server.h"

namespace weir::cli {

runtime::ServerParts ProductionParts(int io_threads, int compute_threads,
                                     std::shared_ptr<Logger> logger);
runtime::ClientParts ProductionClientParts();

/// Tunes the process before its first thread: `threads` computing threads for libtorch, and an
/// allocator that keeps large blocks (a fresh 100 MB gradient costs 40 ms of page faults a step, a
/// reused one none).
void TuneProcess(int threads);

}  // namespace weir::cli
