// Asks the system whether a server may listen, because gRPC does not tell why it could not.
#pragma once

#include "absl/status/status.h"
#include "cluster/host_port.h"

namespace weir::rpc {

/// Binds `address` for a moment, without listening, so that no client can mistake it for a server.
/// Unavailable with address and errno text when that fails (the port is taken, the address is not
/// this machine's, ...); InvalidArgument for a host that has no address. May block while a name is
/// looked up. Always OK for port 0.
absl::Status ProbePort(const HostPort& address);

}  // namespace weir::rpc
