// One attempt to reach an address of the wire.
#pragma once

#include <memory>
#include <string>

#include "transport/connection.h"
#include "transport/inproc/connection.h"

namespace weir::transport::inproc {

/// Calls `done` exactly once, on a strand of the wire's scheduler.
void Dial(std::shared_ptr<Shared> shared, const std::string& address, TimePoint deadline,
          DialCallback done);

}  // namespace weir::transport::inproc
