#include "transport/tcp/socket_options.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <asio/socket_base.hpp>
#include <string_view>

namespace weir::transport::tcp {
namespace {

bool IsSameHost(const asio::ip::tcp::socket& socket) {
  std::error_code error;
  const auto remote = socket.remote_endpoint(error);
  if (error) return false;
  const auto local = socket.local_endpoint(error);
  return remote.address().is_loopback() || (!error && local.address() == remote.address());
}

/// Where BBR is the host's default, its pacing makes loopback 1.3 to 1.5 times slower. Not every
/// kernel lets us choose: then it stays as it is.
void AvoidPacing(asio::ip::tcp::socket& socket) {
  constexpr std::string_view kAlgorithm = "reno";
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_CONGESTION, kAlgorithm.data(),
               kAlgorithm.size());
}

}  // namespace

void CloseOnExec(int descriptor) {
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

std::error_code Configure(asio::ip::tcp::socket& socket, const Options& options) {
  CloseOnExec(socket.native_handle());
  std::error_code error;
  socket.set_option(asio::ip::tcp::no_delay(true), error);
  if (error) return error;
  socket.native_non_blocking(true, error);
  if (error) return error;
  if (options.send_buffer_bytes > 0) {
    std::error_code ignored;
    socket.set_option(asio::socket_base::send_buffer_size(options.send_buffer_bytes), ignored);
  }
  if (IsSameHost(socket)) AvoidPacing(socket);
  return {};
}

}  // namespace weir::transport::tcp
