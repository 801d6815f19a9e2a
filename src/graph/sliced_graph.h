// A graph being written anew without its sliced variables, node by node (see apply_shard_map.cc).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/node_util.h"
#include "graph/shard_map.h"
#include "weir/graph.h"

namespace weir::graph {

/// Both graphs, and what stands in the new one for each node of the old one. Nodes of the old graph
/// are named by their position in it, "n"; they are written in topological order. Both the old
/// graph and the map must outlive it.
class SlicedGraph {
 public:
  SlicedGraph(const GraphDef& graph, const ShardMap& map);

  const GraphDef& old() const { return graph_; }
  const Node& Old(int n) const { return NodeAt(graph_, n); }
  const Node& New(int n) const { return NodeAt(result_, n); }
  GraphDef Take() && { return std::move(result_); }

  /// How a Variable node of the old graph is cut; null when it is whole.
  const SlicedVariable* SlicingOf(const Node& variable) const;
  /// The new nodes of the slices of the old graph's Variable node `variable`.
  const std::vector<int>& SlicesOf(int variable) const;
  /// The device that all who compute with the variable's value ask for, and so where that value is
  /// put together and the values for its slices are taken apart; "" when they do not agree.
  std::string UsersDevice(const Node& variable) const;
  /// What stands for the data edge `old` now.
  Edge NewEdge(const Edge& old) const;
  /// The control inputs of a node of the old graph, as they are now.
  std::vector<Edge> Controls(const Node& node) const;

  /// Adds a node whose outputs are known; or infers them. Returns its position.
  int Append(Node node);
  absl::StatusOr<int> Add(Node node);
  /// Adds an operator of ATen with one output.
  absl::StatusOr<Edge> AddAten(const std::string& name, const char* op, const std::string& device,
                               std::vector<Edge> inputs, AttrMap attrs);
  /// `parts` put together along `axis` under that name.
  absl::StatusOr<Edge> AddConcatenation(const std::string& name, const std::string& device,
                                        const std::vector<Edge>& parts, int axis);
  /// What `node`, of the old graph, does to a whole variable, done to `slice`: with `inputs` in
  /// place of its inputs behind the handle.
  absl::StatusOr<int> AddForSlice(const Node& node, int slice, const std::vector<Edge>& inputs);
  /// "<of>/<what>", or the next name like it that is free.
  std::string Fresh(const Node& of, const std::string& what);
  /// False when that name is taken already; it is from now on.
  bool Claim(const std::string& name) { return names_.Make(name) == name; }

  /// Node `n` as it was, but for what stands for its inputs.
  void Copy(int n);
  /// `outputs` stand for those of `n`, and the node of the first for its having run.
  void Replace(int n, const std::vector<Edge>& outputs);
  /// Whoever waits for `n` waits for all the new `nodes`.
  void ReplaceControl(int n, const std::vector<int>& nodes);
  /// `slices`, new nodes, stand for the variable `n`.
  void ReplaceVariable(int n, std::vector<int> slices);

 private:
  const GraphDef& graph_;
  const ShardMap& map_;
  FreshNames names_;
  GraphDef result_;
  // By node of the old graph: what stands for its outputs, for its having run, and for a variable
  // the nodes of its slices.
  std::vector<std::vector<Edge>> outputs_;
  std::vector<std::vector<Edge>> controls_;
  std::vector<std::vector<int>> slices_;
};

/// The number of rows of a Variable node.
std::int64_t RowsOf(const Node& variable);

}  // namespace weir::graph
