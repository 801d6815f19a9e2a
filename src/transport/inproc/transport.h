// The in-process transport; made by Network::NewTransport, see network.h.
#pragma once

#include <memory>

#include "transport/connection.h"
#include "transport/inproc/wire.h"

namespace weir::transport::inproc {

std::unique_ptr<Transport> NewTransport(std::shared_ptr<Wire> wire);

}  // namespace weir::transport::inproc
