// Deadlines in gRPC's form.
#pragma once

#include <grpc/support/time.h>

#include "base/scheduler.h"

namespace weir::rpc {

/// TimePoint::max() is never.
inline gpr_timespec ToGrpcTime(TimePoint deadline) {
  if (deadline == TimePoint::max()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  const Duration left = deadline - std::chrono::steady_clock::now();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(left.count(), GPR_TIMESPAN));
}

inline bool HasPassed(gpr_timespec deadline) {
  return gpr_time_cmp(gpr_now(deadline.clock_type), deadline) >= 0;
}

}  // namespace weir::rpc
