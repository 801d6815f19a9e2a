// One attempt to reach an address.
#pragma once

#include <memory>
#include <string>

#include "transport/connection.h"
#include "transport/tcp/shared.h"

namespace weir::transport::tcp {

/// Resolves `address` and tries its endpoints in turn. Calls `done` exactly once, on a loop, unless
/// the loops have ended already.
void Dial(std::shared_ptr<Shared> shared, const std::string& address, TimePoint deadline,
          DialCallback done);

}  // namespace weir::transport::tcp
