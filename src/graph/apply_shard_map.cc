// Writes a graph anew, its sliced variables as what they stand for: here variables and reads of the
// whole, in sliced_rows.cc and sliced_updates.cc the rest.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/node_util.h"
#include "graph/op_registry.h"
#include "graph/passes.h"
#include "graph/row_shards.h"
#include "graph/shape_inference.h"
#include "graph/sliced_graph.h"
#include "graph/sliced_rows.h"
#include "graph/sliced_updates.h"
#include "tensor/shape.h"

namespace weir::graph {
namespace {

at::Tensor PartOf(const at::Tensor& value, const SlicedVariable& sliced, std::size_t index,
                  std::int64_t begin) {
  const auto slice = static_cast<std::int64_t>(index);
  const at::Tensor part =
      sliced.layout == RowLayout::kMod
          ? value.slice(0, slice, std::nullopt, static_cast<std::int64_t>(sliced.slices.size()))
          : value.narrow(sliced.axis, begin, sliced.slices[index].size);
  return part.contiguous();
}

std::string PartText(const Node& variable, const SlicedVariable& sliced, std::size_t index) {
  return absl::StrCat("part ", index, " of ", sliced.slices.size(), " along axis ", sliced.axis,
                      " (", std::string(LayoutName(sliced.layout)), ") of ",
                      ShapeToString(AttrOr<std::vector<std::int64_t>>(variable, "shape", {})));
}

// Slice `index` of `variable`, which begins at `begin` along the axis.
Node SliceNode(const Node& variable, const SlicedVariable& sliced, std::size_t index,
               std::int64_t begin) {
  const Slice& slice = sliced.slices[index];
  Node node = variable;
  node.name = slice.name;
  node.device = slice.device;
  node.colocation.clear();
  // Who looks rows up in another order than they are stored in must not find them.
  node.attrs["part"] = PartText(variable, sliced, index);
  if (const auto drawn_as = AttrOr<std::string>(node, "drawn_as", ""); !drawn_as.empty())
    node.attrs["drawn_as"] = SliceName(drawn_as, index);
  for (const char* name : {"axis", "sizes", "layout", "slice_devices"}) node.attrs.erase(name);
  auto& shape = std::get<std::vector<std::int64_t>>(node.attrs["shape"]);
  shape[static_cast<std::size_t>(sliced.axis)] = slice.size;
  if (const auto found = node.attrs.find("initializer_value"); found != node.attrs.end()) {
    if (auto* value = std::get_if<at::Tensor>(&found->second))
      *value = PartOf(*value, sliced, index, begin);
  }
  return node;
}

absl::Status WriteVariable(SlicedGraph& graph, int n, const SlicedVariable& sliced) {
  std::vector<int> slices;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < sliced.slices.size(); ++i) {
    Node node = SliceNode(graph.Old(n), sliced, i, begin);
    if (!graph.Claim(node.name))
      return absl::InvalidArgumentError(absl::StrCat("the graph has another '", node.name, "'"));
    begin += sliced.slices[i].size;
    slices.push_back(graph.Append(std::move(node)));
  }
  graph.ReplaceVariable(n, std::move(slices));
  return absl::OkStatus();
}

bool IsFirstRead(const GraphDef& graph, int n) {
  const Edge& handle = NodeAt(graph, n).inputs[0];
  const auto reads = [&](const Node& node) {
    return node.op == "Read" && node.inputs[0] == handle;
  };
  return std::none_of(graph.nodes.begin(), graph.nodes.begin() + n, reads);
}

absl::StatusOr<Edge> AddWhole(SlicedGraph& graph, int n, const Node& variable,
                              const SlicedVariable& sliced) {
  const Node& read = graph.Old(n);
  const std::string device = graph.UsersDevice(variable);
  if (sliced.layout == RowLayout::kMod) {
    WEIR_ASSIGN_OR_RETURN(const Edge all, graph.AddAten(graph.Fresh(read, "rows"), "arange", device,
                                                        {}, {{"end", RowsOf(variable)}}));
    return AddRowsInOrder(graph, n, variable, sliced, all, device);
  }
  std::vector<Edge> parts;
  for (const int slice : graph.SlicesOf(read.inputs[0].node)) {
    WEIR_ASSIGN_OR_RETURN(const int at, graph.AddForSlice(read, slice, {}));
    parts.push_back({at, 0});
  }
  return graph.AddConcatenation(read.name, device, parts, sliced.axis);
}

absl::Status WriteRead(SlicedGraph& graph, int n, const Node& variable,
                       const SlicedVariable& sliced) {
  WEIR_ASSIGN_OR_RETURN(const Edge value, AddWhole(graph, n, variable, sliced));
  // Fetching a variable's name means what its first Read gives.
  if (IsFirstRead(graph.old(), n)) {
    WEIR_RETURN_IF_ERROR(
        graph.Add({.name = variable.name, .op = "Identity", .inputs = {value}}).status());
  }
  graph.Replace(n, {value});
  return absl::OkStatus();
}

absl::Status WriteIsInitialized(SlicedGraph& graph, int n) {
  const Node& node = graph.Old(n);
  std::vector<Edge> parts;
  for (const int slice : graph.SlicesOf(node.inputs[0].node)) {
    WEIR_ASSIGN_OR_RETURN(const int at, graph.AddForSlice(node, slice, {}));
    parts.push_back({at, 0});
  }
  WEIR_ASSIGN_OR_RETURN(const Edge stack,
                        graph.AddAten(graph.Fresh(node, "stack"), "stack", "", parts,
                                      {{"tensors.size", static_cast<std::int64_t>(parts.size())}}));
  WEIR_ASSIGN_OR_RETURN(const Edge all, graph.AddAten(node.name, "all", "", {stack}, {}));
  graph.Replace(n, {all});
  return absl::OkStatus();
}

absl::Status WriteUse(SlicedGraph& graph, int n, const Node& variable,
                      const SlicedVariable& sliced) {
  const Node& node = graph.Old(n);
  if (node.op == "Read") return WriteRead(graph, n, variable, sliced);
  if (node.op == "Gather") return WriteGather(graph, n, variable, sliced);
  if (node.op == "IsInitialized") return WriteIsInitialized(graph, n);
  if (node.op == "Assign" || node.op == "AssignAdd") return WriteDenseUpdates(graph, n, sliced);
  if (node.op == "Apply" && !AttrOr(node, "sparse", false))
    return WriteDenseUpdates(graph, n, sliced);
  if (node.op == "Apply" || node.op == "ScatterAdd" || node.op == "ScatterUpdate")
    return WriteSparseUpdates(graph, n, sliced);
  return absl::InvalidArgumentError(absl::StrCat(
      "variable '", variable.name, "' is cut into slices, and ", node.op, " needs a whole one"));
}

absl::Status Write(SlicedGraph& graph, int n) {
  const Node& node = graph.Old(n);
  const OpInfo* op = FindOp(node.op);
  const bool uses_variable = op != nullptr && op->handles > 0;
  const Node& variable = uses_variable ? graph.Old(node.inputs[0].node) : node;
  const SlicedVariable* sliced = graph.SlicingOf(variable);
  // It may come from anywhere, and what follows relies on the number and shapes of its inputs.
  if (uses_variable) WEIR_RETURN_IF_ERROR(InferOutputs(graph.old(), node).status());
  if (node.op == "Average") return WriteAverage(graph, n);
  if (node.op == "Lookup") return WriteLookup(graph, n, variable, sliced);
  if (sliced != nullptr && node.op == "Variable") return WriteVariable(graph, n, *sliced);
  if (sliced != nullptr && uses_variable) return WriteUse(graph, n, variable, *sliced);
  graph.Copy(n);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GraphDef> ApplyShardMap(GraphDef graph, const ShardMap& map) {
  const bool has_lookups =
      std::ranges::any_of(graph.nodes, [](const Node& node) { return node.op == "Lookup"; });
  if (map.variables.empty() && !has_lookups) return graph;
  WEIR_ASSIGN_OR_RETURN(const std::vector<int> order, TopologicalOrder(graph));
  SlicedGraph result(graph, map);
  for (const int n : order) {
    const absl::Status status = Write(result, n);
    if (!status.ok()) return Annotate(status, absl::StrCat("node '", NodeAt(graph, n).name, "'"));
  }
  return std::move(result).Take();
}

}  // namespace weir::graph
