// What can be set of the gRPC control plane.
#pragma once

#include <chrono>

#include "base/scheduler.h"

namespace weir::rpc {

struct GrpcOptions {
  /// The pause after a failed attempt to connect grows from one to the other. (gRPC raises a first
  /// pause below 100 ms to that.)
  Duration backoff_min = std::chrono::milliseconds(50);
  Duration backoff_max = std::chrono::milliseconds(500);
  /// A connection attempt that nobody answers, not even with a refusal, is given up after this.
  Duration connect_timeout = std::chrono::seconds(5);
};

}  // namespace weir::rpc
