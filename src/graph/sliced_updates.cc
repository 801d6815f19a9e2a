#include "graph/sliced_updates.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/op_registry.h"
#include "graph/row_shards.h"
#include "graph/sliced_rows.h"

namespace weir::graph {
namespace {

// Data inputs of the old `node` from `first` on, which all slices share.
std::vector<Edge> SharedInputs(const SlicedGraph& graph, const Node& node, std::size_t first) {
  std::vector<Edge> shared;
  for (std::size_t i = first; i < static_cast<std::size_t>(NumDataInputs(node)); ++i)
    shared.push_back(graph.NewEdge(node.inputs[i]));
  return shared;
}

// `n` has run when all `updates` have. The group is for those who name it as a target: nodes that
// wait for `n` wait for the updates, and so for no message by way of another task.
absl::Status AddGroup(SlicedGraph& graph, int n, const std::vector<int>& updates) {
  Node group{.name = graph.Old(n).name, .op = "Group"};
  for (const int update : updates) group.inputs.push_back({update, Edge::kControl});
  WEIR_RETURN_IF_ERROR(graph.Add(std::move(group)).status());
  graph.ReplaceControl(n, updates);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Edge>> AddSplit(SlicedGraph& graph, const Node& node,
                                           const SlicedVariable& sliced) {
  Node split{
      .name = graph.Fresh(node, "split"), .op = "Split", .inputs = {graph.NewEdge(node.inputs[1])}};
  split.device = graph.UsersDevice(graph.Old(node.inputs[0].node));
  SetShardAttrs(sliced.sizes(), sliced.layout, split);
  split.attrs["axis"] = static_cast<std::int64_t>(sliced.axis);
  WEIR_ASSIGN_OR_RETURN(const int at, graph.Add(std::move(split)));
  std::vector<Edge> parts;
  for (std::size_t i = 0; i < sliced.slices.size(); ++i) parts.push_back({at, static_cast<int>(i)});
  return parts;
}

// Which inputs of an update are the ids and the values, and what becomes of several values for one
// row.
struct SparseInputs {
  std::size_t ids;
  std::size_t values;
  const char* combine;
};

bool IsCutLike(const SlicedVariable* a, const SlicedVariable* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->axis == b->axis && a->layout == b->layout && a->sizes() == b->sizes();
}

SparseInputs SparseInputsOf(const Node& node) {
  if (node.op == "Apply") return {.ids = 2, .values = 1, .combine = "sum"};
  return {.ids = 1, .values = 2, .combine = node.op == "ScatterUpdate" ? "last" : "sum"};
}

}  // namespace

absl::Status WriteDenseUpdates(SlicedGraph& graph, int n, const SlicedVariable& sliced) {
  const Node& node = graph.Old(n);
  WEIR_ASSIGN_OR_RETURN(const std::vector<Edge> parts, AddSplit(graph, node, sliced));
  std::vector<int> updates;
  for (const int slice : graph.SlicesOf(node.inputs[0].node)) {
    std::vector<Edge> inputs = SharedInputs(graph, node, 2);
    inputs.insert(inputs.begin(), parts[updates.size()]);
    WEIR_ASSIGN_OR_RETURN(const int update, graph.AddForSlice(node, slice, inputs));
    updates.push_back(update);
  }
  return AddGroup(graph, n, updates);
}

absl::Status WriteSparseUpdates(SlicedGraph& graph, int n, const SlicedVariable& sliced) {
  const Node& node = graph.Old(n);
  const Node& variable = graph.Old(node.inputs[0].node);
  const SparseInputs at = SparseInputsOf(node);
  WEIR_RETURN_IF_ERROR(CheckRows(variable, &sliced));
  Node sum{.name = graph.Fresh(node, "rows"),
           .op = "SumRows",
           .inputs = {graph.NewEdge(node.inputs[at.ids]), graph.NewEdge(node.inputs[at.values])}};
  sum.device = graph.UsersDevice(variable);
  SetShardAttrs(sliced.sizes(), sliced.layout, sum);
  sum.attrs["combine"] = at.combine;
  sum.attrs["variable"] = variable.name;
  WEIR_ASSIGN_OR_RETURN(const int rows, graph.Add(std::move(sum)));
  std::vector<int> updates;
  for (const int slice : graph.SlicesOf(node.inputs[0].node)) {
    const int first = 2 * static_cast<int>(updates.size());
    std::vector<Edge> inputs(2);
    inputs[at.ids - 1] = {rows, first};
    inputs[at.values - 1] = {rows, first + 1};
    for (const Edge& shared : SharedInputs(graph, node, 3)) inputs.push_back(shared);
    WEIR_ASSIGN_OR_RETURN(const int update, graph.AddForSlice(node, slice, inputs));
    updates.push_back(update);
  }
  return AddGroup(graph, n, updates);
}

absl::Status WriteAverage(SlicedGraph& graph, int n) {
  const Node& node = graph.Old(n);
  const Node& average = graph.Old(node.inputs[0].node);
  const Node& variable = graph.Old(node.inputs[1].node);
  const SlicedVariable* sliced = graph.SlicingOf(average);
  if (!IsCutLike(sliced, graph.SlicingOf(variable))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable '", variable.name, "' and its average '", average.name, "' are not cut alike"));
  }
  if (sliced == nullptr) {
    graph.Copy(n);
    return absl::OkStatus();
  }
  const std::vector<int>& values = graph.SlicesOf(node.inputs[1].node);
  std::vector<int> updates;
  for (const int slice : graph.SlicesOf(node.inputs[0].node)) {
    std::vector<Edge> inputs = SharedInputs(graph, node, 2);
    inputs.insert(inputs.begin(), {values[updates.size()], 0});
    WEIR_ASSIGN_OR_RETURN(const int update, graph.AddForSlice(node, slice, inputs));
    updates.push_back(update);
  }
  return AddGroup(graph, n, updates);
}

}  // namespace weir::graph
