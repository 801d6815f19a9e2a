#include "cli/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weir::cli {
namespace {

/// A bound socket that is closed with its scope.
class BoundSocket {
 public:
  BoundSocket() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    ok_ = fd_ >= 0 && ::bind(fd_, reinterpret_cast<sockaddr*>(&address_), size) == 0 &&
          ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address_), &size) == 0;
  }
  BoundSocket(BoundSocket&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), ok_(other.ok_), address_(other.address_) {}
  ~BoundSocket() {
    if (fd_ >= 0) ::close(fd_);
  }
  BoundSocket& operator=(BoundSocket&&) = delete;

  bool ok() const { return ok_; }
  int port() const { return ntohs(address_.sin_port); }

 private:
  int fd_;
  bool ok_ = false;
  sockaddr_in address_{};
};

}  // namespace

absl::StatusOr<int> FindFreePort() {
  WEIR_ASSIGN_OR_RETURN(const std::vector<int> ports, FindFreePorts(1));
  return ports[0];
}

absl::StatusOr<std::vector<int>> FindFreePorts(int count) {
  std::vector<BoundSocket> sockets;
  std::vector<int> ports;
  for (int i = 0; i < count; ++i) {
    BoundSocket socket;
    if (!socket.ok())
      return absl::UnavailableError(
          absl::StrCat("no free port on 127.0.0.1: ", std::strerror(errno)));
    ports.push_back(socket.port());
    sockets.push_back(std::move(socket));
  }
  return ports;
}

}  // namespace weir::cli
