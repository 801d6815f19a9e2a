#include "graph/stages.h"

#include <algorithm>
#include <string_view>

#include "graph/node_util.h"

namespace weir::graph {

DeviceNumbers::DeviceNumbers(const GraphDef& graph) {
  absl::flat_hash_map<std::string_view, int> numbers;
  for (const Node& node : graph.nodes) {
    if (numbers.emplace(node.device, 0).second) names_.push_back(node.device);
  }
  std::ranges::sort(names_);
  for (std::size_t i = 0; i < names_.size(); ++i) numbers[names_[i]] = static_cast<int>(i);
  by_node_.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) by_node_.push_back(numbers[node.device]);
}

std::vector<int> ComputeStages(const GraphDef& graph, const std::vector<int>& order,
                               const DeviceNumbers& devices) {
  std::vector<int> stages(graph.nodes.size(), 0);
  for (const int n : order) {
    int& stage = stages[static_cast<std::size_t>(n)];
    for (const Edge& input : NodeAt(graph, n).inputs) {
      const int crossing = devices.of_node(input.node) == devices.of_node(n) ? 0 : 1;
      stage = std::max(stage, stages[static_cast<std::size_t>(input.node)] + crossing);
    }
  }
  return stages;
}

}  // namespace weir::graph
