// From "host:port" to socket addresses.
#pragma once

#include <asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/host_port.h"
#include "transport/tcp/loop.h"

namespace weir::transport::tcp {

using Endpoints = std::vector<asio::ip::tcp::endpoint>;

/// Looks `target` up; blocks while it asks the network about a name. Unavailable when the name is
/// unknown; else at least one endpoint, in the order in which to try them.
absl::StatusOr<Endpoints> Resolve(const HostPort& target);

/// Calls `done` on `loop`, unless the loop ends first. Asking about a name cannot be cancelled, so
/// it is done on a thread of its own, for which nobody has to wait.
void ResolveOnLoop(std::shared_ptr<Loop> loop, const HostPort& target,
                   std::function<void(absl::StatusOr<Endpoints>)> done);

/// "127.0.0.1:80" or "[::1]:80"
std::string ToString(const asio::ip::tcp::endpoint& endpoint);

/// std::error_code's text, for messages.
std::string ErrorText(const std::error_code& error);

}  // namespace weir::transport::tcp
