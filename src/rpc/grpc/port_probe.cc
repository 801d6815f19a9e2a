#include "rpc/grpc/port_probe.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weir::rpc {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::StatusOr<Addresses> Resolve(const HostPort& address) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot listen at ", address.ToString(), ": ", gai_strerror(error)));
  }
  return Addresses(found, &freeaddrinfo);
}

class Socket {
 public:
  explicit Socket(int family) : fd_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

/// 0 or errno. A family that the system does not know is gRPC's to skip.
int TryBind(const addrinfo& address) {
  const Socket socket(address.ai_family);
  if (socket.fd() < 0) return errno == EAFNOSUPPORT ? 0 : errno;
  const int on = 1;
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  return ::bind(socket.fd(), address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
}

}  // namespace

absl::Status ProbePort(const HostPort& address) {
  WEIR_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(address));
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    if (const int error = TryBind(*each); error != 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen at ", address.ToString(), ": ", std::strerror(error)));
    }
  }
  return absl::OkStatus();
}

}  // namespace weir::rpc
