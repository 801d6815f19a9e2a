#include "graph/sliced_graph.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/op_registry.h"
#include "graph/shape_inference.h"

namespace weir::graph {
namespace {

std::size_t At(int n) {
  return static_cast<std::size_t>(n);
}

}  // namespace

SlicedGraph::SlicedGraph(const GraphDef& graph, const ShardMap& map)
    : graph_(graph),
      map_(map),
      names_(graph),
      outputs_(graph.nodes.size()),
      controls_(graph.nodes.size()),
      slices_(graph.nodes.size()) {
  result_.seed = graph.seed;
}

const SlicedVariable* SlicedGraph::SlicingOf(const Node& variable) const {
  const auto found = map_.variables.find(variable.name);
  return found == map_.variables.end() ? nullptr : &found->second;
}

const std::vector<int>& SlicedGraph::SlicesOf(int variable) const {
  return slices_[At(variable)];
}

std::string SlicedGraph::UsersDevice(const Node& variable) const {
  std::set<std::string> devices;
  const auto is_read = [&](const Edge& edge) {
    const Node& source = Old(edge.node);
    return !edge.is_control() && source.op == "Read" &&
           Old(source.inputs[0].node).name == variable.name;
  };
  for (const Node& node : graph_.nodes) {
    const bool looks_up = node.op == "Lookup" && Old(node.inputs[0].node).name == variable.name;
    // Gradients are made where the values were used.
    if (looks_up || (node.op != "Gradients" && std::ranges::any_of(node.inputs, is_read)))
      devices.insert(node.device);
  }
  return devices.size() == 1 ? *devices.begin() : "";
}

Edge SlicedGraph::NewEdge(const Edge& old) const {
  return outputs_[At(old.node)][At(old.output)];
}

std::vector<Edge> SlicedGraph::Controls(const Node& node) const {
  std::vector<Edge> controls;
  for (const Edge& input : node.inputs) {
    if (!input.is_control()) continue;
    for (const Edge& control : controls_[At(input.node)]) AddUnique(controls, control);
  }
  return controls;
}

int SlicedGraph::Append(Node node) {
  result_.nodes.push_back(std::move(node));
  return static_cast<int>(result_.nodes.size()) - 1;
}

absl::StatusOr<int> SlicedGraph::Add(Node node) {
  WEIR_ASSIGN_OR_RETURN(node.outputs, InferOutputs(result_, node));
  return Append(std::move(node));
}

absl::StatusOr<Edge> SlicedGraph::AddAten(const std::string& name, const char* op,
                                          const std::string& device, std::vector<Edge> inputs,
                                          AttrMap attrs) {
  Node node{.name = name, .op = "Aten", .inputs = std::move(inputs), .attrs = std::move(attrs)};
  node.attrs["operator"] = absl::StrCat("aten::", op);
  node.attrs.emplace("overload", "");
  node.device = device;
  WEIR_ASSIGN_OR_RETURN(const int at, Add(std::move(node)));
  return Edge{at, 0};
}

absl::StatusOr<Edge> SlicedGraph::AddConcatenation(const std::string& name,
                                                   const std::string& device,
                                                   const std::vector<Edge>& parts, int axis) {
  if (parts.size() > 1) {
    return AddAten(name, "cat", device, parts,
                   {{"tensors.size", static_cast<std::int64_t>(parts.size())},
                    {"dim", static_cast<std::int64_t>(axis)}});
  }
  WEIR_ASSIGN_OR_RETURN(const int at,
                        Add({.name = name, .op = "Identity", .inputs = parts, .device = device}));
  return Edge{at, 0};
}

absl::StatusOr<int> SlicedGraph::AddForSlice(const Node& node, int slice,
                                             const std::vector<Edge>& inputs) {
  Node part = node;
  std::string op = node.op;
  std::ranges::transform(op, op.begin(), [](unsigned char c) { return std::tolower(c); });
  part.name = Fresh(New(slice), op);
  part.colocation.clear();
  part.inputs = {{slice, 0}};
  part.inputs.insert(part.inputs.end(), inputs.begin(), inputs.end());
  for (const Edge& control : Controls(node)) part.inputs.push_back(control);
  return Add(std::move(part));
}

std::string SlicedGraph::Fresh(const Node& of, const std::string& what) {
  return names_.Make(absl::StrCat(of.name, "/", what));
}

void SlicedGraph::Copy(int n) {
  Node node = Old(n);
  node.inputs.clear();
  for (const Edge& input : Old(n).inputs)
    if (!input.is_control()) node.inputs.push_back(NewEdge(input));
  for (const Edge& control : Controls(Old(n))) node.inputs.push_back(control);
  // What shares the device of a sliced variable shares that of its first slice.
  if (map_.variables.contains(node.colocation)) node.colocation = SliceName(node.colocation, 0);
  const int at = Append(std::move(node));
  ReplaceControl(n, {at});
  for (std::size_t o = 0; o < Old(n).outputs.size(); ++o)
    outputs_[At(n)].push_back({.node = at, .output = static_cast<int>(o)});
}

void SlicedGraph::Replace(int n, const std::vector<Edge>& outputs) {
  ReplaceControl(n, {outputs.front().node});
  outputs_[At(n)] = outputs;
}

void SlicedGraph::ReplaceControl(int n, const std::vector<int>& nodes) {
  controls_[At(n)].clear();
  for (const int node : nodes) controls_[At(n)].push_back({node, Edge::kControl});
}

void SlicedGraph::ReplaceVariable(int n, std::vector<int> slices) {
  Replace(n, {{slices.front(), 0}});
  slices_[At(n)] = std::move(slices);
}

std::int64_t RowsOf(const Node& variable) {
  return AttrOr<std::vector<std::int64_t>>(variable, "shape", {0}).front();
}

}  // namespace weir::graph
