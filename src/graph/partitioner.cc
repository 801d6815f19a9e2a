#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/node_util.h"
#include "graph/op_registry.h"
#include "graph/passes.h"
#include "graph/stages.h"

namespace weir::graph {
namespace {

// A value, or the fact that a node has run (output kControl), on its way to another device.
struct Crossing {
  Edge source;
  int to = 0;
  auto Key() const { return std::tuple(source.node, to, source.output); }
  bool operator<(const Crossing& other) const { return Key() < other.Key(); }
};

// Its two ends, as positions in the partitions.
struct Ends {
  std::uint32_t id = 0;
  std::size_t send = 0;
  std::optional<int> recv;
};

// The first output of a Backward node leaves before the node has run to its end, so its arrival
// does not say that the node has run.
bool ArrivalMeansDone(const Node& source) {
  return source.op != "Backward";
}

// One run of PartitionGraph. Partitions are numbered as the devices are, by name.
class Partitioner {
 public:
  Partitioner(const GraphDef& graph, std::vector<int> order)
      : graph_(graph),
        order_(std::move(order)),
        devices_(graph),
        names_(graph),
        local_(graph.nodes.size(), 0) {}

  absl::StatusOr<PartitionedGraph> Run() {
    for (int d = 0; d < devices_.count(); ++d) {
      result_.partitions.push_back({.device = devices_.name(d), .graph = {}});
      result_.partitions.back().graph.seed = graph_.seed;
    }
    FindCrossings();
    WEIR_RETURN_IF_ERROR(CheckCrossings());
    // Going through the whole graph in order keeps each partition in order.
    for (const int n : order_) {
      AddNode(n);
      AddSends(n);
    }
    NameVersions();
    CountFeedsAndFetches();
    return std::move(result_);
  }

 private:
  bool Crosses(const Edge& edge, int consumer) const {
    return devices_.of_node(edge.node) != devices_.of_node(consumer);
  }

  std::vector<Node>& NodesOf(int device) {
    return result_.partitions[static_cast<std::size_t>(device)].graph.nodes;
  }

  void FindCrossings() {
    std::set<Crossing> wanted;
    std::set<std::pair<int, int>> values;  // (node, device) of the data among them
    for (const int n : order_) {
      for (const Edge& input : NodeAt(graph_, n).inputs) {
        if (!Crosses(input, n)) continue;
        wanted.insert({.source = input, .to = devices_.of_node(n)});
        if (!input.is_control()) values.emplace(input.node, devices_.of_node(n));
      }
    }
    for (const Crossing& crossing : wanted) {
      const bool rides_along = crossing.source.is_control() &&
                               ArrivalMeansDone(NodeAt(graph_, crossing.source.node)) &&
                               values.contains({crossing.source.node, crossing.to});
      if (!rides_along) ends_.emplace(crossing, Ends());
    }
  }

  // The pair that brings `crossing`: its own, or for a control edge that has none, the first that
  // brings a value of the same node.
  std::map<Crossing, Ends>::iterator PairOf(const Crossing& crossing) {
    const auto found = ends_.lower_bound(crossing);
    WEIR_CHECK(found != ends_.end() && found->first.source.node == crossing.source.node &&
               found->first.to == crossing.to);
    return found;
  }

  absl::Status CheckCrossings() const {
    for (const auto& [crossing, ends] : ends_) {
      if (crossing.source.is_control()) continue;
      if (InfoOf(graph_, crossing.source).dtype != at::ScalarType::Undefined) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "'", TensorName(graph_, crossing.source), "' is no tensor and cannot go from ",
          NodeAt(graph_, crossing.source.node).device, " to ", devices_.name(crossing.to)));
    }
    return absl::OkStatus();
  }

  void AddNode(int n) {
    Node node = NodeAt(graph_, n);
    const int device = devices_.of_node(n);
    std::vector<Edge> inputs;
    for (const Edge& input : node.inputs) {
      if (!Crosses(input, n)) {
        AddInput(inputs,
                 {.node = local_[static_cast<std::size_t>(input.node)], .output = input.output});
      } else {
        const int output = input.is_control() ? Edge::kControl : 0;
        AddInput(inputs, {.node = RecvOf({.source = input, .to = device}), .output = output});
      }
    }
    node.inputs = std::move(inputs);
    node.colocation.clear();  // it is placed, and whom it was to be with need not be in the step
    local_[static_cast<std::size_t>(n)] = static_cast<int>(NodesOf(device).size());
    NodesOf(device).push_back(std::move(node));
  }

  // Several control edges may have become one.
  static void AddInput(std::vector<Edge>& inputs, const Edge& edge) {
    if (edge.is_control()) {
      AddUnique(inputs, edge);
    } else {
      inputs.push_back(edge);
    }
  }

  // The position of the Recv, which is made when its first consumer comes.
  int RecvOf(const Crossing& wanted) {
    auto& [crossing, ends] = *PairOf(wanted);
    if (!ends.recv) {
      ends.recv = static_cast<int>(NodesOf(crossing.to).size());
      NodesOf(crossing.to).push_back(MakeRecv(crossing, ends.id));
    }
    return *ends.recv;
  }

  void AddSends(int n) {
    const Crossing first{.source = {.node = n, .output = Edge::kControl}, .to = -1};
    for (auto at = ends_.lower_bound(first); at != ends_.end() && at->first.source.node == n;
         ++at) {
      const Crossing& crossing = at->first;
      at->second.id = static_cast<std::uint32_t>(result_.edges.size()) + 1;
      AddCrossEdge(crossing, at->second.id);
      std::vector<Node>& nodes = NodesOf(devices_.of_node(n));
      at->second.send = nodes.size();
      nodes.push_back(MakeSend(crossing, at->second.id));
    }
  }

  void AddCrossEdge(const Crossing& crossing, std::uint32_t id) {
    CrossEdge edge;
    edge.id = id;
    edge.tensor = TensorName(graph_, crossing.source);
    edge.from = NodeAt(graph_, crossing.source.node).device;
    edge.to = devices_.name(crossing.to);
    edge.control = crossing.source.is_control();
    if (!edge.control) {
      edge.dtype = InfoOf(graph_, crossing.source).dtype;
      edge.shape = InfoOf(graph_, crossing.source).shape;
    }
    result_.edges.push_back(std::move(edge));
  }

  Node MakeSend(const Crossing& crossing, std::uint32_t id) {
    const Node& source = NodeAt(graph_, crossing.source.node);
    Node node;
    node.name = names_.Make(absl::StrCat(source.name, "_S", id));
    node.op = "Send";
    node.device = source.device;
    node.attrs = {{"edge", static_cast<std::int64_t>(id)},
                  {"to", devices_.name(crossing.to)},
                  {"control", crossing.source.is_control()}};
    node.inputs = {{.node = local_[static_cast<std::size_t>(crossing.source.node)],
                    .output = crossing.source.output}};
    return node;
  }

  Node MakeRecv(const Crossing& crossing, std::uint32_t id) {
    const Node& source = NodeAt(graph_, crossing.source.node);
    Node node;
    node.name = names_.Make(absl::StrCat(source.name, "_R", id));
    node.op = "Recv";
    node.device = devices_.name(crossing.to);
    node.attrs = {{"edge", static_cast<std::int64_t>(id)},
                  {"from", source.device},
                  {"control", crossing.source.is_control()}};
    if (!crossing.source.is_control()) node.outputs = {InfoOf(graph_, crossing.source)};
    return node;
  }

  void NameVersions() {
    std::map<int, int> reads;  // variable -> its first Read or Gather
    for (const int n : order_) {
      const Node& node = NodeAt(graph_, n);
      if (node.op == "Read" || node.op == "Gather") reads.emplace(node.inputs[0].node, n);
    }
    for (const int n : order_) {
      const Node& node = NodeAt(graph_, n);
      if (node.op != "Apply" || NumDataInputs(node) < 2) continue;
      const auto read = reads.find(node.inputs[0].node);
      if (read != reads.end()) NameVersion(node.inputs[1], n, {.node = read->second, .output = 0});
    }
  }

  // `gradient` goes into `consumer` and so to the variable of `read`. What comes of a sum beside
  // the variable has crossed before the sum.
  void NameVersion(const Edge& gradient, int consumer, const Edge& read) {
    if (!Crosses(gradient, consumer)) {
      const Node& source = NodeAt(graph_, gradient.node);
      if (source.op != "SumGradients") return;
      for (const Edge& part : source.inputs) NameVersion(part, gradient.node, read);
      return;
    }
    const int device = devices_.of_node(gradient.node);
    const auto pulled = ends_.find({.source = read, .to = device});
    if (pulled == ends_.end() || !pulled->second.recv) return;
    std::vector<Node>& nodes = NodesOf(device);
    const Ends& push = PairOf({.source = gradient, .to = devices_.of_node(consumer)})->second;
    nodes[push.send].attrs.emplace("version_of",
                                   nodes[static_cast<std::size_t>(*pulled->second.recv)].name);
  }

  void CountFeedsAndFetches() {
    for (const Node& node : graph_.nodes) {
      const int count = static_cast<int>(AttrOr<std::int64_t>(node, "index", 0)) + 1;
      if (node.op == "Feed") result_.num_feeds = std::max(result_.num_feeds, count);
      if (node.op == "Fetch") result_.num_fetches = std::max(result_.num_fetches, count);
    }
  }

  const GraphDef& graph_;
  const std::vector<int> order_;
  const DeviceNumbers devices_;
  FreshNames names_;
  std::vector<int> local_;  // by node: its position in its partition
  std::map<Crossing, Ends> ends_;
  PartitionedGraph result_;
};

absl::Status CheckPlaced(const GraphDef& graph) {
  for (const Node& node : graph.nodes) {
    if (node.device.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("operation '", node.name, "' has not been placed"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PartitionedGraph> PartitionGraph(const GraphDef& graph) {
  WEIR_RETURN_IF_ERROR(CheckPlaced(graph));
  WEIR_ASSIGN_OR_RETURN(std::vector<int> order, TopologicalOrder(graph));
  return Partitioner(graph, std::move(order)).Run();
}

}  // namespace weir::graph
