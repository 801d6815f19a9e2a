// What is known of a call from outside, and the words for the ways in which it may fail before the
// service has answered. Both kinds of control plane use the same.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/scheduler.h"
#include "cluster/task.h"

namespace weir::rpc {

struct CallInfo {
  std::string method;   // "RegisterPlan"
  std::string address;  // "host:port"
  TaskId to;            // empty job: whoever listens there
  bool wait_for_ready = false;

  /// Unavailable: nobody listens there, or the connection broke. `reason` may be empty.
  absl::Status Unreachable(std::string_view reason) const;
  /// DeadlineExceeded after `waited`.
  absl::Status TimedOut(Duration waited) const;
  /// Cancelled: the control plane of the client is gone.
  absl::Status PlaneClosed() const;
  /// "RegisterPlan on ps:0 (127.0.0.1:4711)", for other errors.
  std::string ToString() const;
};

}  // namespace weir::rpc
