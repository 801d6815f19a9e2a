// Device functions that spread a model over a cluster: variables on the ps job, the rest on the
// worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "weir/graph.h"

namespace weir {

/// How variables are dealt out over the ps tasks.
enum class PlacementStrategy : std::uint8_t {
  kGreedyBytes = 0,  // the task that holds the fewest bytes so far; ties: the lowest index
  kRoundRobin = 1,   // in creation order, as the original's default
  kRandom = 2,       // MD5("<name>_<seed>") mod tasks
};

struct ReplicaDeviceSetterOptions {
  int ps_tasks = 0;  // 0: no device function, every node stays free
  std::string ps_device = "/job:ps";
  std::string worker_device = "/job:worker";
  bool merge_devices = true;  // false: a node that already has a device keeps it untouched
  PlacementStrategy strategy = PlacementStrategy::kGreedyBytes;
  std::uint64_t seed = 0;  // of kRandom
};

/// tf.train.replica_device_setter. Holds the loads dealt so far: one setter for one graph.
DeviceFunction ReplicaDeviceSetter(const ReplicaDeviceSetterOptions& options);

}  // namespace weir
