#include "cli/free_port.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

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
  const auto ports = FindFreePorts(50);
  ASSERT_TRUE(ports.ok()) << ports.status();
  EXPECT_EQ(std::set<int>(ports->begin(), ports->end()).size(), 50u);
  for (const int port : *ports) {
    EXPECT_GE(port, range.first);
    EXPECT_LE(port, range.last);
  }
}

}  // namespace
}  // namespace weir::cli
