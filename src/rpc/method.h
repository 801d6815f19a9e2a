// A call as a function of the service that answers it: how both kinds of control plane carry a call
// between the thread that took it and the thread that may block in it.
#pragma once

#include <functional>

#include "rpc/control_plane.h"

namespace weir::rpc {

/// Called once at most; `Result` is absl::Status or absl::StatusOr of a reply.
template <typename Result>
using Method = std::function<Result(TaskService&)>;

}  // namespace weir::rpc
