// Ports for tasks on this host.
#pragma once

#include <vector>

#include "absl/status/statusor.h"

namespace weir::cli {

/// A loopback port that was free a moment ago. Somebody else may take it before it is used.
absl::StatusOr<int> FindFreePort();
/// `count` different ones, all held until the last is found.
absl::StatusOr<std::vector<int>> FindFreePorts(int count);

}  // namespace weir::cli
