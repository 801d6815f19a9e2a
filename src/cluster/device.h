// Device names: grammar, merging and matching, as the original has them (TensorFlow 1.14,
// core/util/device_name_utils.cc and python/framework/device_spec.py).
//
//   /job:NAME /replica:N /task:N /device:TYPE[:N|:*]   in any order; `*` for "any"
//   /cpu[:N] /gpu[:N] and their upper-case forms       the old short form of /device:TYPE[:N]
//
// A job, replica or task that is repeated counts as it is given last; a second device type is an
// error, as in the original's Python, through which every user's string went there. Everything here
// is a pure function over values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cluster/task.h"

namespace weir {

/// A device, or a request for one: fields left out match anything.
struct DeviceSpec {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;  // "CPU" and "GPU" in upper case, other types as written
  std::optional<int> id;

  /// InvalidArgument, quoting the text and saying what was expected where. "" and "/" are the empty
  /// spec.
  static absl::StatusOr<DeviceSpec> Parse(std::string_view text);
  /// Canonical, only the fields that are set: "/job:ps/task:0/device:CPU:0"; a type without id
  /// prints "/device:CPU:*", an id without type "/device:*:0"; "" when nothing is set. Parse gives
  /// the same spec again.
  std::string ToString() const;

  bool operator==(const DeviceSpec&) const = default;

  /// Every field set to `task`'s; unset fields replica 0, type CPU, id 0.
  static DeviceSpec FullCpu(const TaskId& task, int id = 0);
  bool has_task() const { return job.has_value() && task.has_value(); }
  /// REQUIRES: has_task().
  TaskId task_id() const { return {*job, *task}; }
};

/// Scope merging: a field of `inner` wins, a field it lacks comes from `outer`. Type and id are
/// merged one by one, as in the original: CPU:1 around GPU is GPU:1.
DeviceSpec MergeScopes(const DeviceSpec& outer, const DeviceSpec& inner);

/// MergeDevNames of the original: fields of both. A conflict of job, replica or task is
/// InvalidArgument always; a conflict of type or id is InvalidArgument, or with `soft` the
/// conflicting type (and id), or id alone, is dropped.
absl::StatusOr<DeviceSpec> MergeRequests(const DeviceSpec& a, const DeviceSpec& b,
                                         bool soft = false);

/// True if `device` (all fields set) satisfies `request`; a `replica` left out means 0.
bool Matches(const DeviceSpec& request, const DeviceSpec& device);

}  // namespace weir
