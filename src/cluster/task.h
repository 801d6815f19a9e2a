// The name of a task: which process of the cluster is meant.
#pragma once

#include <compare>
#include <string>
#include <utility>

namespace weir {

struct TaskId {
  std::string job;
  int index = 0;

  /// "ps:0", the form used in messages.
  std::string ToString() const { return job + ":" + std::to_string(index); }
  /// "/job:ps/task:0", the form used in device names.
  std::string DevicePrefix() const { return "/job:" + job + "/task:" + std::to_string(index); }
  auto operator<=>(const TaskId&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const TaskId& task) {
    return H::combine(std::move(h), task.job, task.index);
  }
};

}  // namespace weir
