// The gradients that arrive at each tensor from the segments that consume it, and their sums.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/node_util.h"
#include "graph/stages.h"
#include "weir/graph.h"

namespace weir::graph {

/// Collects contributions and adds SumGradients nodes where a tensor has several. The order of
/// summation is fixed, as floating point addition is not associative: first what was made on one
/// device, there, latest stage first; then the sums of the devices, on the tensor's own device,
/// latest stage first, ties by device name. So each device sends one gradient for each tensor.
class GradientSums {
 public:
  /// Adds nodes to `graph`, named "<prefix>/sum/<tensor>". Arguments must outlive this object.
  GradientSums(GraphDef& graph, FreshNames& names, const DeviceNumbers& devices,
               std::string prefix);

  /// `gradient`, made on `device` for a consumer of `stage`, belongs to `tensor`.
  void Add(const Edge& tensor, const Edge& gradient, int stage, int device);

  /// Has any gradient arrived at `tensor` so far?
  bool Has(const Edge& tensor) const;

  /// The sum of all that has arrived. No more may be added for this tensor afterwards. A tensor at
  /// which nothing arrived gets a sum of nothing, which is an absent gradient.
  Edge Total(const Edge& tensor);

 private:
  struct Contribution {
    Edge gradient;
    int stage = 0;
    int device = 0;
  };
  using Key = std::pair<int, int>;  // node, output

  Edge Sum(const Edge& tensor, const std::vector<Edge>& parts, int device);

  GraphDef& graph_;
  FreshNames& names_;
  const DeviceNumbers& devices_;
  const std::string prefix_;
  std::map<Key, std::vector<Contribution>> contributions_;
  std::map<Key, Edge> totals_;
};

}  // namespace weir::graph
