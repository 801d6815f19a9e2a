// What the parts of one TCP transport share.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "transport/registry.h"
#include "transport/tcp/loop.h"
#include "transport/tcp/transport.h"

namespace weir::transport::tcp {

/// Outlives the transport for as long as its parts live. Immutable but for the turn.
struct Shared {
  Options options;
  std::shared_ptr<Registry> registry = std::make_shared<Registry>();
  std::vector<std::shared_ptr<Loop>> loops;
  std::atomic<std::size_t> turn{0};

  const std::shared_ptr<Loop>& NextLoop() { return loops[turn++ % loops.size()]; }
};

}  // namespace weir::transport::tcp
