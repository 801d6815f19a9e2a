#include "cli/free_port.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <set>
#include <utility>

namespace weir::cli {
namespace {

TEST(FreePortTest, TheRangeAvoidsOutgoingConnections) {
  EXPECT_EQ(RangeOutsideEphemeral(32768, 60999), (PortRange{10000, 32767}));
  EXPECT_EQ(RangeOutsideEphemeral(1024, 60999), (PortRange{61000, 65535}));
  EXPECT_EQ(RangeOutsideEphemeral(1024, 65535), (PortRange{10000, 65535}));
}

TEST(FreePortTest, PortsAreDifferentAndOutsideTheKernelsRange) {
  int first = 0, last = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first >> last;
  const PortRange range = RangeOutsideEphemeral(first, last);
  const auto reserved = ReservedPorts::Find(50);
  ASSERT_TRUE(reserved.ok()) << reserved.status();
  const std::vector<int>& ports = reserved->ports();
  EXPECT_EQ(std::set<int>(ports.begin(), ports.end()).size(), 50u);
  for (const int port : ports) {
    EXPECT_GE(port, range.first);
    EXPECT_LE(port, range.last);
  }
}

/// errno of bind and listen at `port`; 0 when they succeed.
int Listen(int port, int reuse) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
  const bool ok = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
                  ::listen(fd, 1) == 0;
  const int error = ok ? 0 : errno;
  ::close(fd);
  return error;
}

TEST(FreePortTest, AReservedPortIsForServersOnly) {
  auto reserved = ReservedPorts::Find(1);
  ASSERT_TRUE(reserved.ok()) << reserved.status();
  EXPECT_EQ(Listen(reserved->ports()[0], /*reuse=*/0), EADDRINUSE);
  EXPECT_EQ(Listen(reserved->ports()[0], /*reuse=*/1), 0);
  const int port = reserved->ports()[0];
  {
    const ReservedPorts gone = *std::move(reserved);
  }
  EXPECT_EQ(Listen(port, /*reuse=*/0), 0);
}

}  // namespace
}  // namespace weir::cli
