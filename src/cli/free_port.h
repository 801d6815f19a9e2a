// Ports for tasks on this host.
//
// They are outside the range from which the kernel takes the ports of outgoing connections: a task
// that starts a little earlier than its siblings, and dials, cannot take one of theirs.
#pragma once

#include <vector>

#include "absl/status/statusor.h"

namespace weir::cli {

/// A loopback port that was free a moment ago. Another server may take it before it is used.
absl::StatusOr<int> FindFreePort();
/// `count` different ones, from a random place on, all held until the last is found. Unavailable
/// with the errno's text when there are too few.
absl::StatusOr<std::vector<int>> FindFreePorts(int count);

struct PortRange {
  int first, last;
  bool operator==(const PortRange&) const = default;
};
/// Where FindFreePorts looks when outgoing connections use `first` to `last`: below, or else above,
/// or anywhere if they use all.
PortRange RangeOutsideEphemeral(int first, int last);

}  // namespace weir::cli
