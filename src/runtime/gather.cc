#include "runtime/gather.h"

#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/mutex.h"

namespace weir::runtime {
namespace {

/// Outlives the wait: a reply may come after its deadline.
struct State {
  Mutex mutex;
  std::set<TaskId> missing WEIR_GUARDED_BY(mutex);
  absl::Status first_error WEIR_GUARDED_BY(mutex);
  std::unique_ptr<Driver> driver;

  void Reply(const TaskId& task, const absl::Status& status) {
    {
      MutexLock lock(mutex);
      missing.erase(task);
      if (first_error.ok()) first_error = status;
    }
    driver->Post([] {});
  }
  bool Complete() {
    MutexLock lock(mutex);
    return missing.empty();
  }
  absl::Status Outcome() {
    MutexLock lock(mutex);
    if (!first_error.ok() || missing.empty()) return first_error;
    return absl::DeadlineExceededError(absl::StrCat(
        "no reply from ", absl::StrJoin(missing, ", ", [](std::string* out, const TaskId& task) {
          absl::StrAppend(out, task.ToString());
        })));
  }
};

}  // namespace

absl::Status Gather(
    Scheduler& scheduler, const std::vector<TaskId>& tasks, TimePoint deadline,
    const std::function<void(const TaskId&, std::function<void(absl::Status)>)>& start) {
  auto state = std::make_shared<State>();
  state->driver = scheduler.NewDriver();
  {
    MutexLock lock(state->mutex);
    state->missing.insert(tasks.begin(), tasks.end());
  }
  for (const TaskId& task : tasks) {
    start(task, [state, task](const absl::Status& status) { state->Reply(task, status); });
  }
  state->driver->RunUntil([&] { return state->Complete(); }, deadline);
  return state->Outcome();
}

}  // namespace weir::runtime
