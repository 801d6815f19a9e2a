// Ports for tasks on this host.
//
// They are outside the range from which the kernel takes the ports of outgoing connections: a task
// that starts a little earlier than its siblings, and dials, cannot take one of theirs.
#pragma once

#include <vector>

#include "absl/status/statusor.h"

namespace weir::cli {

/// Loopback ports that nobody else who reserves gets while this lives, in this process or another.
/// A server that sets SO_REUSEADDR, as all of ours do, can listen on them meanwhile. Move-only.
class ReservedPorts {
 public:
  /// `count` different ones, from a random place on. Unavailable with the errno's text when there
  /// are too few.
  static absl::StatusOr<ReservedPorts> Find(int count);
  ReservedPorts(ReservedPorts&&) = default;
  ReservedPorts& operator=(ReservedPorts&&) = delete;
  ~ReservedPorts();

  const std::vector<int>& ports() const { return ports_; }

 private:
  ReservedPorts() = default;

  std::vector<int> ports_;
  std::vector<int> sockets_;  // bound, not listening
};

struct PortRange {
  int first, last;
  bool operator==(const PortRange&) const = default;
};
/// Where ports are looked for when outgoing connections use `first` to `last`: below, or else
/// above, or anywhere if they use all.
PortRange RangeOutsideEphemeral(int first, int last);

}  // namespace weir::cli
