// Small views of a GraphDef that several passes share: names of tensors, fresh names, who uses
// what.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "weir/graph.h"

namespace weir::graph {

/// REQUIRES: `index` is a node of `graph`.
Node& NodeAt(GraphDef& graph, int index);
const Node& NodeAt(const GraphDef& graph, int index);

/// "node" for output 0, "node:1" for others, "^node" for a control edge.
std::string TensorName(const GraphDef& graph, const Edge& edge);

/// The same as part of a new node's name, where a colon would be taken for an output's: "node_1".
std::string TensorNamePart(const GraphDef& graph, const Edge& edge);

/// What is known of the output that a data edge comes from.
const OutputInfo& InfoOf(const GraphDef& graph, const Edge& edge);

bool IsAten(const Node& node, std::string_view operator_name);

/// One input of a node, seen from the producer.
struct Use {
  int node = 0;   // the consumer
  int input = 0;  // position among its inputs
};

/// For each node the uses of its outputs, data and control, in the order of the consumers.
std::vector<std::vector<Use>> FindUses(const GraphDef& graph);

/// Appends `edge` unless it is there already.
void AddUnique(std::vector<Edge>& edges, const Edge& edge);

/// Positions of nodes by name. Holds views of the names: valid while the graph's nodes stay.
absl::flat_hash_map<std::string_view, int> IndexByName(const GraphDef& graph);

/// Gives names that no node of the graph bears.
class FreshNames {
 public:
  explicit FreshNames(const GraphDef& graph);
  /// `wanted`, or with a suffix "_1", "_2", ... when it is taken. The result is taken from now on.
  std::string Make(const std::string& wanted);

 private:
  absl::flat_hash_set<std::string> taken_;
};

}  // namespace weir::graph
