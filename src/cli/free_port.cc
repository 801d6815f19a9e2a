#include "cli/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"

namespace weir::cli {
namespace {

constexpr int kPortMin = 10'000;
constexpr int kPortMax = 65'535;
constexpr int kPortsMin = 1'000;  // fewer are no range to choose from

PortRange RangeHere() {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  int first = 0, last = 0;
  if (file >> first >> last) return RangeOutsideEphemeral(first, last);
  return RangeOutsideEphemeral(32'768, 60'999);  // Linux's own
}

/// A socket bound to `port`, if nobody has it; else -1 and errno.
int Bind(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    // From now on it is in the way of those who bind without this option, and of nobody else.
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    return fd;
  }
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

}  // namespace

PortRange RangeOutsideEphemeral(int first, int last) {
  if (first - kPortMin >= kPortsMin) return {kPortMin, first - 1};
  if (kPortMax - last >= kPortsMin) return {last + 1, kPortMax};
  return {kPortMin, kPortMax};
}

absl::StatusOr<ReservedPorts> ReservedPorts::Find(int count) {
  const PortRange range = RangeHere();
  const int size = range.last - range.first + 1;
  std::random_device random;
  const int start = std::uniform_int_distribution<int>(0, size - 1)(random);
  ReservedPorts found;
  for (int i = 0; i < size && static_cast<int>(found.ports_.size()) < count; ++i) {
    const int port = range.first + (start + i) % size;
    const int fd = Bind(port);
    if (fd < 0 && errno != EADDRINUSE && errno != EACCES) break;
    if (fd < 0) continue;
    found.ports_.push_back(port);
    found.sockets_.push_back(fd);
  }
  if (static_cast<int>(found.ports_.size()) == count) return found;
  return absl::UnavailableError(absl::StrCat("no ", count, " free ports in ", range.first, "-",
                                             range.last, " on 127.0.0.1: ", std::strerror(errno)));
}

ReservedPorts::~ReservedPorts() {
  for (const int fd : sockets_) ::close(fd);
}

}  // namespace weir::cli
