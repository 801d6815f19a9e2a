#include "graph/node_util.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "graph/op_registry.h"

namespace weir::graph {

Node& NodeAt(GraphDef& graph, int index) {
  return graph.nodes[static_cast<std::size_t>(index)];
}

const Node& NodeAt(const GraphDef& graph, int index) {
  return graph.nodes[static_cast<std::size_t>(index)];
}

std::string TensorName(const GraphDef& graph, const Edge& edge) {
  const std::string& name = NodeAt(graph, edge.node).name;
  if (edge.is_control()) return "^" + name;
  return edge.output == 0 ? name : absl::StrCat(name, ":", edge.output);
}

std::string TensorNamePart(const GraphDef& graph, const Edge& edge) {
  const std::string& name = NodeAt(graph, edge.node).name;
  return edge.output <= 0 ? name : absl::StrCat(name, "_", edge.output);
}

const OutputInfo& InfoOf(const GraphDef& graph, const Edge& edge) {
  return NodeAt(graph, edge.node).outputs[static_cast<std::size_t>(edge.output)];
}

bool IsAten(const Node& node, std::string_view operator_name) {
  return node.op == "Aten" && AttrOr<std::string>(node, "operator", "") == operator_name;
}

std::vector<std::vector<Use>> FindUses(const GraphDef& graph) {
  std::vector<std::vector<Use>> uses(graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const std::vector<Edge>& inputs = graph.nodes[n].inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      uses[static_cast<std::size_t>(inputs[i].node)].push_back(
          {.node = static_cast<int>(n), .input = static_cast<int>(i)});
    }
  }
  return uses;
}

void AddUnique(std::vector<Edge>& edges, const Edge& edge) {
  if (std::ranges::find(edges, edge) == edges.end()) edges.push_back(edge);
}

absl::flat_hash_map<std::string_view, int> IndexByName(const GraphDef& graph) {
  absl::flat_hash_map<std::string_view, int> index;
  index.reserve(graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    index.emplace(graph.nodes[n].name, static_cast<int>(n));
  }
  return index;
}

FreshNames::FreshNames(const GraphDef& graph) {
  taken_.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) taken_.insert(node.name);
}

std::string FreshNames::Make(const std::string& wanted) {
  std::string name = wanted;
  for (int suffix = 1; !taken_.insert(name).second; ++suffix) {
    name = absl::StrCat(wanted, "_", suffix);
  }
  return name;
}

}  // namespace weir::graph
