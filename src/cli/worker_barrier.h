// Where workers meet: a counter variable that each worker raises when it is there.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "weir/device_setter.h"
#include "weir/graph.h"
#include "weir/session.h"

namespace weir::cli {

/// The part of a graph that counts the workers that have reached a point ("ready", "done"). Add it
/// before the session is opened.
class WorkerBarrier {
 public:
  /// `place` puts the counter where variables go; may be null.
  WorkerBarrier(Graph& graph, const DeviceFunction& place, std::string point);

  absl::Status CountMe(Session& session);
  /// Blocks until `workers` have been counted. A worker that comes late to a point that others have
  /// passed does not wait. Logs a line every 5 s; DeadlineExceeded says how many are there.
  absl::Status Await(Session& session, int workers, Duration timeout, Logger& logger);

 private:
  const std::string point_;
  Variable counted_;
  Operation count_me_;
};

}  // namespace weir::cli
