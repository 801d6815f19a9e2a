#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/node_util.h"
#include "graph/op_registry.h"
#include "graph/passes.h"
#include "tensor/dtype.h"

namespace weir::graph {
namespace {

std::string TensorText(at::ScalarType dtype, const Shape& shape) {
  if (dtype == at::ScalarType::Undefined) return "handle";
  if (!shape) return DtypeName(dtype) + "[...]";
  return absl::StrCat(DtypeName(dtype), "[", absl::StrJoin(*shape, ","), "]");
}

// Nullopt where the size is known only when the graph runs.
std::optional<std::uint64_t> BytesOf(const CrossEdge& edge) {
  if (!edge.shape) return std::nullopt;
  const absl::StatusOr<std::uint64_t> bytes = TensorBytes(edge.dtype, *edge.shape);
  return bytes.ok() ? std::optional(*bytes) : std::nullopt;
}

std::string OpText(const Node& node) {
  if (node.op == "Aten") {
    const std::string overload = AttrOr<std::string>(node, "overload", "");
    return absl::StrCat(AttrOr<std::string>(node, "operator", ""), overload.empty() ? "" : ".",
                        overload);
  }
  if (node.op == "Apply") return "Apply." + AttrOr<std::string>(node, "rule", "");
  return node.op;
}

std::string NotesOf(const Node& node) {
  std::string notes;
  if (const auto segment = AttrOr<std::int64_t>(node, "segment", -1); segment >= 0) {
    absl::StrAppend(&notes, "  segment ", segment);
  }
  if (node.op == "Send" || node.op == "Recv") {
    absl::StrAppend(&notes, "  edge ", AttrOr<std::int64_t>(node, "edge", 0));
  }
  const std::string version_of = AttrOr<std::string>(node, "version_of", "");
  if (!version_of.empty()) absl::StrAppend(&notes, "  version of ", version_of);
  return notes;
}

std::string NodeText(const GraphDef& graph, const Node& node) {
  std::vector<std::string> inputs;
  for (const Edge& input : node.inputs) inputs.push_back(TensorName(graph, input));
  std::vector<std::string> outputs;
  for (const OutputInfo& output : node.outputs) {
    outputs.push_back(TensorText(output.dtype, output.shape));
  }
  return absl::StrCat("  ", node.name, " = ", OpText(node), "(", absl::StrJoin(inputs, ", "), ")",
                      outputs.empty() ? "" : " -> ", absl::StrJoin(outputs, ", "), NotesOf(node),
                      "\n");
}

std::string EdgeText(const CrossEdge& edge) {
  std::string text =
      absl::StrCat("  ", edge.id, ": ", edge.tensor, "  ", edge.from, " -> ", edge.to);
  if (edge.control) return absl::StrCat(text, "  control\n");
  const auto bytes = BytesOf(edge);
  return absl::StrCat(text, "  ", TensorText(edge.dtype, edge.shape), "  ",
                      bytes ? absl::StrCat(*bytes) : "?", " bytes\n");
}

struct Total {
  int tensors = 0;
  int controls = 0;
  std::uint64_t bytes = 0;
  bool bytes_known = true;
};

void Count(const CrossEdge& edge, Total& total) {
  if (edge.control) {
    ++total.controls;
    return;
  }
  ++total.tensors;
  const auto bytes = BytesOf(edge);
  total.bytes += bytes.value_or(0);
  total.bytes_known = total.bytes_known && bytes.has_value();
}

}  // namespace

std::string DumpText(const PartitionedGraph& graph) {
  std::string text;
  for (const PartitionDef& partition : graph.partitions) {
    absl::StrAppend(&text, partition.device, ": ", partition.graph.nodes.size(), " nodes\n");
    for (const Node& node : partition.graph.nodes) {
      absl::StrAppend(&text, NodeText(partition.graph, node));
    }
  }
  absl::StrAppend(&text, "crossing edges: ", graph.edges.size(), "\n");
  std::map<std::pair<std::string, std::string>, Total> totals;
  for (const CrossEdge& edge : graph.edges) {
    absl::StrAppend(&text, EdgeText(edge));
    Count(edge, totals[{edge.from, edge.to}]);
  }
  absl::StrAppend(&text, "in one step:\n");
  for (const auto& [devices, total] : totals) {
    absl::StrAppend(&text, "  ", devices.first, " -> ", devices.second, ": ", total.tensors,
                    " tensors, ", total.controls, " control, ",
                    total.bytes_known ? "" : "more than ", total.bytes, " bytes\n");
  }
  return text;
}

}  // namespace weir::graph
