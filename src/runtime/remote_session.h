// A session from a process that is no task: plans go over the control plane, feeds and fetches over
// a link.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "rpc/control_plane.h"
#include "transport/connection.h"
#include "weir/session.h"

namespace weir::runtime {

/// What a client runs on; the session keeps it.
struct ClientParts {
  std::shared_ptr<transport::Transport> transport;
  std::shared_ptr<rpc::ControlPlane> control_plane;
  std::shared_ptr<Scheduler> scheduler;
};

/// Opens a session on the master at `address` (host:port). Waits for it until the start deadline.
absl::StatusOr<Session> ConnectSession(ClientParts parts, const std::string& address,
                                       const Graph& graph, const SessionOptions& options);

}  // namespace weir::runtime
