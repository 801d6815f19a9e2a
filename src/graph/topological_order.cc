#include <cstddef>
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/op_registry.h"

namespace weir::graph {
namespace {

// Names a node list longer than this only in part.
constexpr std::size_t kNamesMax = 20;

absl::Status CheckEdges(const GraphDef& graph) {
  for (const Node& node : graph.nodes) {
    for (const Edge& edge : node.inputs) {
      if (edge.node < 0 || static_cast<std::size_t>(edge.node) >= graph.nodes.size()) {
        return absl::InvalidArgumentError(absl::StrCat("node '", node.name,
                                                       "' has an input from node ", edge.node,
                                                       " of ", graph.nodes.size()));
      }
    }
  }
  return absl::OkStatus();
}

// Of a graph whose edges are in range: how many inputs of each node have not run yet, and who waits
// for whom.
struct Waiting {
  explicit Waiting(const GraphDef& graph)
      : inputs(graph.nodes.size()), consumers(graph.nodes.size()) {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      inputs[n] = graph.nodes[n].inputs.size();
      for (const Edge& edge : graph.nodes[n].inputs) {
        consumers[static_cast<std::size_t>(edge.node)].push_back(static_cast<int>(n));
      }
    }
  }

  std::vector<std::size_t> inputs;
  std::vector<std::vector<int>> consumers;
};

// REQUIRES: every node that `waiting` still counts inputs for waits for another such node.
absl::Status DescribeCycle(const GraphDef& graph, const Waiting& waiting) {
  const auto stuck = [&](int n) { return waiting.inputs[static_cast<std::size_t>(n)] > 0; };
  int node = 0;
  while (!stuck(node)) ++node;
  // Going from stuck node to stuck producer must come back to a node seen before.
  std::vector<int> position(graph.nodes.size(), -1);
  std::vector<int> path;
  while (position[static_cast<std::size_t>(node)] < 0) {
    position[static_cast<std::size_t>(node)] = static_cast<int>(path.size());
    path.push_back(node);
    for (const Edge& edge : graph.nodes[static_cast<std::size_t>(node)].inputs) {
      if (!stuck(edge.node)) continue;
      node = edge.node;
      break;
    }
  }
  std::vector<std::string> names;
  for (std::size_t i = path.size();
       i-- > static_cast<std::size_t>(position[static_cast<std::size_t>(node)]);) {
    names.push_back(graph.nodes[static_cast<std::size_t>(path[i])].name);
  }
  const std::string first = names.front();
  if (names.size() > kNamesMax) {
    names.resize(kNamesMax);
    names.emplace_back("...");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the graph has a cycle: ", absl::StrJoin(names, " -> "), " -> ", first));
}

}  // namespace

absl::StatusOr<std::vector<int>> TopologicalOrder(const GraphDef& graph) {
  if (absl::Status status = CheckEdges(graph); !status.ok()) return status;
  Waiting waiting(graph);
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;  // the smallest index first
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (waiting.inputs[n] == 0) ready.push(static_cast<int>(n));
  }
  std::vector<int> order;
  order.reserve(graph.nodes.size());
  while (!ready.empty()) {
    const int node = ready.top();
    ready.pop();
    order.push_back(node);
    for (int consumer : waiting.consumers[static_cast<std::size_t>(node)]) {
      if (--waiting.inputs[static_cast<std::size_t>(consumer)] == 0) ready.push(consumer);
    }
  }
  if (order.size() != graph.nodes.size()) return DescribeCycle(graph, waiting);
  return order;
}

}  // namespace weir::graph
