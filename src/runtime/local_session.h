// A session of the master in this process.
#pragma once

#include <memory>

#include "base/scheduler.h"
#include "runtime/master.h"
#include "weir/session.h"

namespace weir::runtime {

/// `master`, `graph` and `scheduler` are not owned and outlive the session.
Session MakeLocalSession(Master* master, std::shared_ptr<MasterSession> session, const Graph& graph,
                         const SessionOptions& options, Scheduler* scheduler);

}  // namespace weir::runtime
