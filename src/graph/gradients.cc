#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/backward.h"
#include "graph/op_registry.h"
#include "graph/passes.h"
#include "graph/why_unknown.h"
#include "tensor/dtype.h"

namespace weir::graph {
namespace {

constexpr int kNone = -1;

bool IsGradients(const Node& node) {
  return node.op == "Gradients";
}

absl::Status CheckLoss(const GraphDef& graph, const Node& gradients, const Edge& loss) {
  const OutputInfo& info = InfoOf(graph, loss);
  if (!HasGradient(info)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "gradients '", gradients.name, "': the loss '", TensorName(graph, loss), "' is ",
        DtypeName(info.dtype), ", not a floating point tensor", WhyUnknown(graph, loss.node)));
  }
  if (info.shape &&
      std::ranges::any_of(*info.shape, [](std::int64_t dim) { return dim != 1 && dim != -1; })) {
    return absl::InvalidArgumentError(
        absl::StrCat("gradients '", gradients.name, "': the loss '", TensorName(graph, loss),
                     "' has more than one element; reduce it to a scalar first"));
  }
  return absl::OkStatus();
}

absl::Status CheckWanted(const GraphDef& graph, const Node& gradients, const Edge& x) {
  if (HasGradient(InfoOf(graph, x))) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "gradients '", gradients.name, "': '", TensorName(graph, x), "' is ",
      DtypeName(InfoOf(graph, x).dtype), "; only floating point tensors have gradients"));
}

// A loss made from gradients would need the gradients of Backward nodes.
absl::Status CheckFirstOrder(const GraphDef& graph, const std::vector<int>& order) {
  std::vector<int> made_from(graph.nodes.size(), kNone);  // a Gradients node upstream
  for (const int n : order) {
    const Node& node = NodeAt(graph, n);
    for (const Edge& input : node.inputs) {
      if (input.is_control()) continue;
      const int source = made_from[static_cast<std::size_t>(input.node)];
      if (source == kNone) continue;
      if (!IsGradients(node)) {
        made_from[static_cast<std::size_t>(n)] = source;
      } else if (input == node.inputs[0]) {
        return absl::UnimplementedError(
            absl::StrCat("gradients '", node.name, "': the loss '", TensorName(graph, input),
                         "' depends on gradients '", NodeAt(graph, source).name,
                         "'; gradients of gradients are not implemented"));
      }
    }
    if (IsGradients(node)) made_from[static_cast<std::size_t>(n)] = n;
  }
  return absl::OkStatus();
}

// One run of ExpandGradients.
class Expander {
 public:
  Expander(GraphDef& graph, std::vector<int> order)
      : graph_(graph),
        order_(std::move(order)),
        uses_(FindUses(graph)),
        devices_(graph),
        stages_(ComputeStages(graph, order_, devices_)),
        row_(graph),
        names_(graph),
        replacements_(graph.nodes.size()) {}

  absl::Status Run() {
    for (const int n : order_) {
      if (!IsGradients(NodeAt(graph_, n))) continue;
      WEIR_RETURN_IF_ERROR(AddToRequest(n));
    }
    for (Work& work : work_) WEIR_RETURN_IF_ERROR(Expand(work));
    NumberSegments();
    Rewire();
    RemoveGradients();
    return absl::OkStatus();
  }

 private:
  // Gradients nodes of one loss that wait for the same things: they share their backward part.
  struct Work {
    LossRequest request;
    std::vector<int> nodes;
  };
  // What stands for a Gradients node afterwards.
  struct Replacement {
    std::map<int, Edge> outputs;
    std::vector<Edge> controls;
  };
  using WorkKey = std::pair<std::pair<int, int>, std::set<int>>;  // loss, control inputs

  absl::Status AddToRequest(int n) {
    const Node& node = NodeAt(graph_, n);
    const int num_inputs = NumDataInputs(node);
    if (num_inputs < 1 || node.outputs.size() + 1 != static_cast<std::size_t>(num_inputs)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "gradients '", node.name, "' must have a loss and as many outputs as tensors"));
    }
    const Edge loss = node.inputs[0];
    WEIR_RETURN_IF_ERROR(CheckLoss(graph_, node, loss));
    Work& work = WorkFor(node);
    work.nodes.push_back(n);
    for (const int output : WantedOutputs(n)) {
      const Edge x = node.inputs[static_cast<std::size_t>(output) + 1];
      WEIR_RETURN_IF_ERROR(CheckWanted(graph_, node, x));
      AddUnique(work.request.wanted, x);
    }
    return absl::OkStatus();
  }

  Work& WorkFor(const Node& node) {
    const Edge& loss = node.inputs[0];
    const std::vector<Edge> controls(node.inputs.begin() + NumDataInputs(node), node.inputs.end());
    WorkKey key({loss.node, loss.output}, {});
    for (const Edge& control : controls) key.second.insert(control.node);
    const auto [entry, added] = work_index_.emplace(std::move(key), work_.size());
    if (added) {
      work_.push_back({});
      work_.back().request = {.loss = loss, .controls = controls, .wanted = {}, .name = node.name};
    }
    return work_[entry->second];
  }

  // The outputs that somebody consumes. A node that is only run, or waited for, means all of them.
  std::set<int> WantedOutputs(int n) const {
    std::set<int> wanted;
    bool all = uses_[static_cast<std::size_t>(n)].empty();
    for (const Use& use : uses_[static_cast<std::size_t>(n)]) {
      const Edge& edge = NodeAt(graph_, use.node).inputs[static_cast<std::size_t>(use.input)];
      if (edge.is_control()) {
        all = true;
      } else {
        wanted.insert(edge.output);
      }
    }
    if (all) {
      for (std::size_t o = 0; o < NodeAt(graph_, n).outputs.size(); ++o) {
        wanted.insert(static_cast<int>(o));
      }
    }
    return wanted;
  }

  absl::Status Expand(const Work& work) {
    const ForwardGraph forward{
        .order = order_, .stages = stages_, .devices = devices_, .row = row_};
    WEIR_ASSIGN_OR_RETURN(const BackwardPart part,
                          AddBackward(graph_, names_, forward, work.request));
    for (const auto& [segment, nodes] : part.recorded) {
      recorded_[segment].insert(nodes.begin(), nodes.end());
    }
    backward_nodes_.insert(backward_nodes_.end(), part.backward_nodes.begin(),
                           part.backward_nodes.end());
    for (const int n : work.nodes) Replace(n, work.request, part);
    return absl::OkStatus();
  }

  void Replace(int n, const LossRequest& request, const BackwardPart& part) {
    Replacement& replacement = replacements_[static_cast<std::size_t>(n)];
    for (const int output : WantedOutputs(n)) {
      const Edge& x = NodeAt(graph_, n).inputs[static_cast<std::size_t>(output) + 1];
      const auto position = std::ranges::find(request.wanted, x) - request.wanted.begin();
      const Edge& gradient = part.gradients[static_cast<std::size_t>(position)];
      replacement.outputs.emplace(output, gradient);
      AddUnique(replacement.controls, {.node = gradient.node, .output = Edge::kControl});
    }
    if (part.waits_for_controls) return;
    for (const Edge& control : request.controls) AddUnique(replacement.controls, control);
  }

  // Segments of all losses together, in the order in which they run.
  void NumberSegments() {
    std::map<SegmentKey, std::int64_t> numbers;
    std::int64_t next = 0;
    for (const auto& [segment, nodes] : recorded_) {
      numbers.emplace(segment, next);
      for (const int n : nodes) NodeAt(graph_, n).attrs["segment"] = next;
      ++next;
    }
    for (const auto& [segment, n] : backward_nodes_) {
      NodeAt(graph_, n).attrs["segment"] = numbers.at(segment);
    }
  }

  void Rewire() {
    // A Gradients node may wait for another one: by now in topological order.
    for (const int n : order_) {
      if (!IsGradients(NodeAt(graph_, n))) continue;
      std::vector<Edge>& controls = replacements_[static_cast<std::size_t>(n)].controls;
      controls = Substitute(controls);
    }
    for (Node& node : graph_.nodes) {
      if (!IsGradients(node)) node.inputs = Substitute(node.inputs);
    }
  }

  // Data edges stay in their places; a control edge becomes one for each node that stands for it.
  std::vector<Edge> Substitute(const std::vector<Edge>& edges) const {
    std::vector<Edge> result;
    result.reserve(edges.size());
    for (const Edge& edge : edges) {
      const bool replaced = static_cast<std::size_t>(edge.node) < replacements_.size() &&
                            IsGradients(NodeAt(graph_, edge.node));
      if (!replaced) {
        result.push_back(edge);
        continue;
      }
      const Replacement& replacement = replacements_[static_cast<std::size_t>(edge.node)];
      if (edge.is_control()) {
        for (const Edge& control : replacement.controls) AddUnique(result, control);
      } else {
        result.push_back(replacement.outputs.at(edge.output));
      }
    }
    return result;
  }

  void RemoveGradients() {
    std::vector<int> new_index(graph_.nodes.size(), kNone);
    std::vector<Node> kept;
    kept.reserve(graph_.nodes.size());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (IsGradients(graph_.nodes[n])) continue;
      new_index[n] = static_cast<int>(kept.size());
      kept.push_back(std::move(graph_.nodes[n]));
    }
    for (Node& node : kept) {
      for (Edge& input : node.inputs) input.node = new_index[static_cast<std::size_t>(input.node)];
    }
    graph_.nodes = std::move(kept);
  }

  GraphDef& graph_;
  // Of the graph as it came, Gradients nodes included.
  const std::vector<int> order_;
  const std::vector<std::vector<Use>> uses_;
  const DeviceNumbers devices_;
  const std::vector<int> stages_;
  const OutputRow row_;

  FreshNames names_;
  std::map<WorkKey, std::size_t> work_index_;
  std::vector<Work> work_;
  std::map<SegmentKey, std::set<int>> recorded_;
  std::vector<std::pair<SegmentKey, int>> backward_nodes_;
  std::vector<Replacement> replacements_;  // by node of the graph as it came
};

}  // namespace

absl::Status ExpandGradients(GraphDef& graph) {
  if (std::ranges::none_of(graph.nodes, IsGradients)) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(std::vector<int> order, TopologicalOrder(graph));
  WEIR_RETURN_IF_ERROR(CheckFirstOrder(graph, order));
  return Expander(graph, std::move(order)).Run();
}

}  // namespace weir::graph
