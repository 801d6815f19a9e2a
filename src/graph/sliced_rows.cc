#include "graph/sliced_rows.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/row_shards.h"

namespace weir::graph {
namespace {

// Rows of all slices, each once; the positions of the ids in them; their numbers.
struct Rows {
  Edge rows;
  Edge positions;
  Edge numbers;
};

void SetShards(const Node& variable, const SlicedVariable* sliced, Node& node) {
  if (sliced == nullptr) {
    SetShardAttrs({RowsOf(variable)}, RowLayout::kDiv, node);
  } else {
    SetShardAttrs(sliced->sizes(), sliced->layout, node);
  }
}

// The ids of node `n` by slice, without repetitions.
absl::StatusOr<int> AddShardIds(SlicedGraph& graph, int n, const Node& variable,
                                const SlicedVariable* sliced, const Edge& ids,
                                const std::string& device) {
  const Node& node = graph.Old(n);
  Node shard{.name = graph.Fresh(node, "ids"), .op = "ShardIds", .inputs = {ids}};
  for (const Edge& control : graph.Controls(node)) shard.inputs.push_back(control);
  shard.device = device;
  shard.attrs["variable"] = variable.name;
  SetShards(variable, sliced, shard);
  return graph.Add(std::move(shard));
}

absl::StatusOr<Rows> AddRows(SlicedGraph& graph, int n, const Node& variable,
                             const SlicedVariable* sliced, const Edge& ids,
                             const std::string& device) {
  const Node& node = graph.Old(n);
  WEIR_ASSIGN_OR_RETURN(const int shards, AddShardIds(graph, n, variable, sliced, ids, device));
  const std::vector<int> whole = {graph.NewEdge(node.inputs[0]).node};
  std::vector<Edge> parts;
  for (const int slice : sliced == nullptr ? whole : graph.SlicesOf(node.inputs[0].node)) {
    const Edge mine{shards, static_cast<int>(parts.size())};
    WEIR_ASSIGN_OR_RETURN(const int gather,
                          graph.Add({.name = graph.Fresh(graph.New(slice), "gather"),
                                     .op = "Gather",
                                     .inputs = {{slice, 0}, mine}}));
    parts.push_back({gather, 0});
  }
  const int count = static_cast<int>(parts.size());
  const std::string name = node.op == "Lookup" ? node.name : graph.Fresh(node, "rows");
  WEIR_ASSIGN_OR_RETURN(const Edge rows, graph.AddConcatenation(name, device, parts, 0));
  return Rows{.rows = rows, .positions = {shards, count}, .numbers = {shards, count + 1}};
}

}  // namespace

absl::Status CheckRows(const Node& variable, const SlicedVariable* sliced) {
  if (sliced == nullptr || sliced->axis == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("variable '", variable.name,
                                                 "' is cut along axis ", sliced->axis,
                                                 ": its rows cannot be looked up"));
}

absl::StatusOr<Edge> AddRowsInOrder(SlicedGraph& graph, int n, const Node& variable,
                                    const SlicedVariable& sliced, const Edge& ids,
                                    const std::string& device) {
  WEIR_ASSIGN_OR_RETURN(const Rows rows, AddRows(graph, n, variable, &sliced, ids, device));
  return graph.AddAten(graph.Old(n).name, "index_select", device, {rows.rows, rows.positions},
                       {{"dim", std::int64_t{0}}});
}

absl::Status WriteLookup(SlicedGraph& graph, int n, const Node& variable,
                         const SlicedVariable* sliced) {
  WEIR_RETURN_IF_ERROR(CheckRows(variable, sliced));
  const Edge ids = graph.NewEdge(graph.Old(n).inputs[1]);
  WEIR_ASSIGN_OR_RETURN(const Rows rows,
                        AddRows(graph, n, variable, sliced, ids, graph.Old(n).device));
  graph.Replace(n, {rows.rows, rows.positions, rows.numbers});
  return absl::OkStatus();
}

absl::Status WriteGather(SlicedGraph& graph, int n, const Node& variable,
                         const SlicedVariable& sliced) {
  WEIR_RETURN_IF_ERROR(CheckRows(variable, &sliced));
  const Edge ids = graph.NewEdge(graph.Old(n).inputs[1]);
  WEIR_ASSIGN_OR_RETURN(const Edge value,
                        AddRowsInOrder(graph, n, variable, sliced, ids, graph.Old(n).device));
  graph.Replace(n, {value});
  return absl::OkStatus();
}

}  // namespace weir::graph
