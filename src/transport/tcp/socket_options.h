// How Weir's TCP sockets are set up.
#pragma once

#include <asio/ip/tcp.hpp>
#include <system_error>

#include "transport/tcp/transport.h"

namespace weir::transport::tcp {

/// For a socket that is connected. Only what the transport cannot do without is an error.
std::error_code Configure(asio::ip::tcp::socket& socket, const Options& options);

/// Programs that this process starts do not inherit the descriptor.
void CloseOnExec(int descriptor);

}  // namespace weir::transport::tcp
