#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/node_util.h"
#include "graph/op_registry.h"
#include "graph/passes.h"

namespace weir::graph {
namespace {

constexpr std::size_t kGradientInput = 1;  // of an Apply

// One run of HoistTickets.
class Hoister {
 public:
  explicit Hoister(GraphDef& graph) : graph_(graph), names_(graph), uses_(FindUses(graph)) {}

  void Run() {
    const int count = static_cast<int>(graph_.nodes.size());
    for (int n = 0; n < count; ++n) {
      if (NodeAt(graph_, n).op != "Apply" || NumDataInputs(NodeAt(graph_, n)) < 2) continue;
      Hoist(n);
      RelayStep(n);
    }
  }

 private:
  void Hoist(int apply) {
    const std::vector<Edge> inputs = NodeAt(graph_, apply).inputs;
    for (const Edge& input : inputs) {
      if (!input.is_control() || NodeAt(graph_, input.node).op != "Ticket") continue;
      if (!LetWait(apply, kGradientInput, {.apply = apply, .ticket = input.node})) continue;
      // The gradient waits already, wherever it is made.
      std::erase(NodeAt(graph_, apply).inputs, input);
    }
  }

  // The number of the step, where the update wants it, comes with the gradient: from the task that
  // makes it, which has the ticket anyway, and not over a connection between two owners.
  void RelayStep(int apply) {
    const Node& node = NodeAt(graph_, apply);
    if (!AttrOr(node, "step", false)) return;
    const auto position = static_cast<std::size_t>(NumDataInputs(node)) - 1;
    const Edge step = node.inputs[position];
    const std::string maker = NodeAt(graph_, node.inputs[kGradientInput].node).device;
    if (NodeAt(graph_, step.node).op != "Ticket" || maker == node.device ||
        NodeAt(graph_, step.node).device == node.device) {
      return;
    }
    NodeAt(graph_, apply).inputs[position] = Relay(step, maker);
  }

  Edge Relay(const Edge& step, const std::string& device) {
    const auto key = std::pair(step.node, device);
    if (const auto known = relays_.find(key); known != relays_.end()) return known->second;
    Node node;
    node.name = names_.Make(NodeAt(graph_, step.node).name + "/relay");
    node.op = "Identity";
    node.device = device;
    node.inputs = {step};
    node.outputs = {InfoOf(graph_, step)};
    graph_.nodes.push_back(std::move(node));
    const Edge edge{.node = static_cast<int>(graph_.nodes.size()) - 1, .output = 0};
    relays_.emplace(key, edge);
    return edge;
  }

  struct Reason {
    int apply = 0;
    int ticket = 0;
  };

  // Makes what comes into input `position` of `node` from other devices wait there for the ticket.
  // True if anything does.
  bool LetWait(int node, std::size_t position, const Reason& reason) {
    const Edge gradient = NodeAt(graph_, node).inputs[position];
    if (NodeAt(graph_, gradient.node).device != NodeAt(graph_, node).device) {
      NodeAt(graph_, node).inputs[position] = Waiting(gradient, reason);
      return true;
    }
    if (!IsOwnSum(gradient.node)) return false;
    bool any = false;
    for (std::size_t i = 0; i < NodeAt(graph_, gradient.node).inputs.size(); ++i) {
      any = LetWait(gradient.node, i, reason) || any;
    }
    return any;
  }

  // A sum that only one node consumes: then nothing else can be made to wait by mistake.
  bool IsOwnSum(int node) const {
    return NodeAt(graph_, node).op == "SumGradients" &&
           static_cast<std::size_t>(node) < uses_.size() &&
           uses_[static_cast<std::size_t>(node)].size() == 1;
  }

  const Node& VariableOf(int apply) const {
    return NodeAt(graph_, NodeAt(graph_, apply).inputs[0].node);
  }

  Edge Waiting(const Edge& gradient, const Reason& reason) {
    const auto key = std::pair(std::pair(gradient.node, gradient.output), reason.ticket);
    if (const auto known = waiting_.find(key); known != waiting_.end()) return known->second;
    Node node;
    node.name = names_.Make(VariableOf(reason.apply).name + "/gradient");
    node.op = "Identity";
    node.device = NodeAt(graph_, gradient.node).device;
    node.inputs = {gradient, {.node = reason.ticket, .output = Edge::kControl}};
    node.outputs = {InfoOf(graph_, gradient)};
    node.outputs[0].differentiable = false;
    graph_.nodes.push_back(std::move(node));
    const Edge edge{.node = static_cast<int>(graph_.nodes.size()) - 1, .output = 0};
    waiting_.emplace(key, edge);
    return edge;
  }

  GraphDef& graph_;
  FreshNames names_;
  const std::vector<std::vector<Use>> uses_;  // of the graph as it came
  std::map<std::pair<std::pair<int, int>, int>, Edge> waiting_;
  std::map<std::pair<int, std::string>, Edge> relays_;
};

}  // namespace

void HoistTickets(GraphDef& graph) {
  Hoister(graph).Run();
}

}  // namespace weir::graph
