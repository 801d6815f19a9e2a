#include "cli/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weir::cli {
namespace {

constexpr int kPortMin = 10'000;
constexpr int kPortMax = 65'535;
constexpr int kPortsMin = 1'000;  // fewer are no range to choose from

/// A bound socket that is closed with its scope.
class BoundSocket {
 public:
  explicit BoundSocket(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (fd_ < 0 || ::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
      error_ = errno;
  }
  BoundSocket(BoundSocket&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), error_(other.error_) {}
  ~BoundSocket() {
    if (fd_ >= 0) ::close(fd_);
  }
  BoundSocket& operator=(BoundSocket&&) = delete;

  /// 0, or the errno of what failed.
  int error() const { return error_; }

 private:
  int fd_;
  int error_ = 0;
};

}  // namespace

PortRange RangeOutsideEphemeral(int first, int last) {
  if (first - kPortMin >= kPortsMin) return {kPortMin, first - 1};
  if (kPortMax - last >= kPortsMin) return {last + 1, kPortMax};
  return {kPortMin, kPortMax};
}

absl::StatusOr<int> FindFreePort() {
  WEIR_ASSIGN_OR_RETURN(const std::vector<int> ports, FindFreePorts(1));
  return ports[0];
}

absl::StatusOr<std::vector<int>> FindFreePorts(int count) {
  int first = 32'768, last = 60'999;  // Linux's own
  if (std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range"); !(file >> first >> last))
    first = 32'768, last = 60'999;
  const PortRange range = RangeOutsideEphemeral(first, last);
  const int size = range.last - range.first + 1;
  std::random_device random;
  const int start = std::uniform_int_distribution<int>(0, size - 1)(random);
  std::vector<BoundSocket> sockets;
  std::vector<int> ports;
  int error = EADDRINUSE;
  for (int i = 0; i < size && static_cast<int>(ports.size()) < count; ++i) {
    const int port = range.first + (start + i) % size;
    BoundSocket socket(port);
    if (socket.error() != 0) {
      error = socket.error();
      if (error != EADDRINUSE && error != EACCES) break;
      continue;
    }
    ports.push_back(port);
    sockets.push_back(std::move(socket));
  }
  if (static_cast<int>(ports.size()) == count) return ports;
  return absl::UnavailableError(absl::StrCat("no ", count, " free ports in ", range.first, "-",
                                             range.last, " on 127.0.0.1: ", std::strerror(error)));
}

}  // namespace weir::cli
