// The layers of a placed graph between which gradients are handed over.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/graph.h"

namespace weir::graph {

/// Numbers for device names, so that comparing two devices is comparing two ints.
class DeviceNumbers {
 public:
  explicit DeviceNumbers(const GraphDef& graph);
  int of_node(int node) const { return by_node_[static_cast<std::size_t>(node)]; }
  const std::string& name(int number) const { return names_[static_cast<std::size_t>(number)]; }
  int count() const { return static_cast<int>(names_.size()); }

 private:
  std::vector<std::string> names_;  // sorted, so that numbers compare like names
  std::vector<int> by_node_;
};

/// `stage = max over all inputs, data and control, of stage(input) + (same device ? 0 : 1)` for
/// each node. Nodes of one device and stage form a segment. An edge between two segments always
/// goes up in stage, so the graph of segments has no cycle.
/// REQUIRES: `order` is a topological order of `graph`.
std::vector<int> ComputeStages(const GraphDef& graph, const std::vector<int>& order,
                               const DeviceNumbers& devices);

}  // namespace weir::graph
