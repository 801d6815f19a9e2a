#include "graph/passes.h"

namespace weir::graph {

DeviceSet DeviceSet::FromCluster(const ClusterSpec& cluster, const TaskId& session_task,
                                 int cpus_per_task) {
  DeviceSet set;
  set.session_task = session_task;
  for (const TaskId& task : cluster.AllTasks()) {
    for (int id = 0; id < cpus_per_task; ++id) {
      set.devices.push_back(DeviceSpec::FullCpu(task, id));
    }
  }
  return set;
}

}  // namespace weir::graph
