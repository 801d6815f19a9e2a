// Graphs for the tests of the passes, built from plain nodes; and an arithmetic in which they can
// be run exactly.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/passes.h"
#include "weir/graph.h"

namespace weir::graph {

inline constexpr char kPs0[] = "/job:ps/replica:0/task:0/device:CPU:0";
inline constexpr char kPs1[] = "/job:ps/replica:0/task:1/device:CPU:0";
inline constexpr char kWorker0[] = "/job:worker/replica:0/task:0/device:CPU:0";
inline constexpr char kWorker1[] = "/job:worker/replica:0/task:1/device:CPU:0";

/// Adds nodes without checks; float32 tensors unless told otherwise.
class TestGraph {
 public:
  using Dims = std::vector<std::int64_t>;

  GraphDef def;

  Edge Placeholder(const std::string& name, Dims dims = {2, 2}, const std::string& device = "");
  Edge Const(const std::string& name, const std::string& device = "");
  /// The handle.
  Edge Variable(const std::string& name, Dims dims = {2, 2}, const std::string& device = "");
  /// "<variable>/read".
  Edge Read(Edge handle, const std::string& device = "");
  /// A differentiable operator of one output.
  Edge Aten(const std::string& name, std::vector<Edge> inputs, const std::string& device = "",
            Dims dims = {2, 2}, const std::string& op = "aten::add");
  Edge Identity(const std::string& name, Edge input, const std::string& device = "");
  Edge Function(const std::string& name, std::vector<Edge> inputs, const std::string& device = "");
  /// Output i is the gradient of xs[i].
  int Gradients(const std::string& name, Edge loss, const std::vector<Edge>& xs,
                const std::string& device = "");
  /// On the variable's device.
  int Apply(Edge handle, Edge gradient);
  Edge Ticket(Edge global_step);
  int CompleteStep(Edge global_step);
  int Group(const std::string& name, const std::vector<int>& nodes, const std::string& device = "");

  int Add(const std::string& op, const std::string& name, std::vector<Edge> inputs,
          std::vector<OutputInfo> outputs, const std::string& device);
  /// `node` will not run before `before` has.
  void After(int node, int before);
  Node& node(const std::string& name);
  Node& at(int index);
};

/// REQUIRES: there is such a node.
const Node& NodeNamed(const GraphDef& graph, const std::string& name);
int IndexNamed(const GraphDef& graph, const std::string& name);
/// How many nodes of this op there are.
int CountOp(const GraphDef& graph, const std::string& op);
/// The names of a node's inputs, as TensorName writes them.
std::vector<std::string> InputNames(const GraphDef& graph, const std::string& name);
/// Names of all nodes with this op, in order.
std::vector<std::string> NamesOfOp(const GraphDef& graph, const std::string& op);

/// Every edge leads to an earlier node of the same graph, and data comes before control.
bool IsOrdered(const GraphDef& graph);

/// Runs graphs in exact arithmetic modulo 2^64. An Aten or Function node is linear: output o is the
/// sum of its inputs, each times an odd number that depends on (node, input, o); Feed, Const and
/// Read give numbers that depend on their names. So a gradient is a sum over paths of products of
/// these numbers, and any mistake in wiring changes it.
class ExactRun {
 public:
  using Value = std::optional<std::uint64_t>;  // nullopt: an absent gradient

  /// Runs all partitions against each other, each in its own order, until nothing can go on.
  /// Returns the names of the nodes that never ran.
  std::vector<std::string> Run(const PartitionedGraph& graph);

  /// What came into the Fetch of each index.
  std::map<std::int64_t, Value> fetches;
  /// What came into each Apply, by its name.
  std::map<std::string, Value> applied;
  /// Names in the order in which they ran.
  std::vector<std::string> order;

  /// d loss / d x in `graph`, which holds no Backward nodes, by going back from the loss.
  static Value Gradient(const GraphDef& graph, Edge loss, Edge x);

 private:
  struct Partition;
  bool RunNode(Partition& partition, int n);
  void RunBackward(Partition& partition, int n);

  std::map<std::int64_t, Value> sent_;
};

}  // namespace weir::graph
