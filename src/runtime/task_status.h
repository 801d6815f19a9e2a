// The store, as `weir status` shows it.
#pragma once

#include <vector>

#include "rpc/control_plane.h"
#include "store/variable_store.h"

namespace weir::runtime {

/// Sorted by container and name.
std::vector<rpc::VariableStatus> StatusOfVariables(const store::VariableStore& store);

}  // namespace weir::runtime
