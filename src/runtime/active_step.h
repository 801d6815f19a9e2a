// One step, as its master sees it.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "runtime/master.h"

namespace weir::runtime {

/// Over when the local share has ended and every remote task has said DONE, or has been told to
/// abort.
struct Master::ActiveStep {
  store::StepId id;
  std::shared_ptr<MasterSession> session;
  std::shared_ptr<const MasterPlan> plan;

  mutable Mutex mutex;
  bool local_over WEIR_GUARDED_BY(mutex) = false;
  std::set<TaskId> missing WEIR_GUARDED_BY(mutex);  // remote tasks that have not said DONE
  absl::Status status WEIR_GUARDED_BY(mutex);       // the first error wins
  StepResult result WEIR_GUARDED_BY(mutex);
  StepDone done WEIR_GUARDED_BY(mutex);
};

}  // namespace weir::runtime
