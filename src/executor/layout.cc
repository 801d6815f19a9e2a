#include "executor/layout.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/op_registry.h"

namespace weir::executor {
namespace {

absl::Status BadNode(const Node& node, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("node '", node.name, "': ", what));
}

absl::Status CheckEdges(const GraphDef& graph) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    bool control_seen = false;
    for (const Edge& input : node.inputs) {
      if (input.node < 0 || static_cast<std::size_t>(input.node) >= n) {
        return BadNode(node, "an input does not come before it");
      }
      if (input.is_control()) {
        control_seen = true;
        continue;
      }
      const Node& source = graph.nodes[static_cast<std::size_t>(input.node)];
      if (input.output < 0 || static_cast<std::size_t>(input.output) >= source.outputs.size()) {
        return BadNode(node, absl::StrCat("'", source.name, "' has no output ", input.output));
      }
      if (control_seen) return BadNode(node, "a data input follows a control input");
    }
  }
  return absl::OkStatus();
}

std::uint32_t Size(const std::vector<std::uint32_t>& array) {
  return static_cast<std::uint32_t>(array.size());
}

// One run of MakeLayout. REQUIRES: CheckEdges.
class LayoutBuilder {
 public:
  explicit LayoutBuilder(const GraphDef& graph) : graph_(graph), segments_(graph) {
    layout_.nodes.resize(graph.nodes.size());
    layout_.backwards.assign(segments_.size(), 0);
  }

  absl::StatusOr<Layout> Run() {
    AddOutputs();
    WEIR_RETURN_IF_ERROR(ReadBackwards());
    FindLiveOutputs();
    NumberLeaves();
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) AddInputs(n);
    AddTargets();
    return std::move(layout_);
  }

 private:
  using LeafKey = std::pair<std::int64_t, std::uint32_t>;  // segment, output's slot

  const Node& NodeAt(int node) const { return graph_.nodes[static_cast<std::size_t>(node)]; }

  std::uint32_t SlotOf(const Edge& edge) const {
    return layout_.nodes[static_cast<std::size_t>(edge.node)].outputs.begin +
           static_cast<std::uint32_t>(edge.output);
  }

  void AddOutputs() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const auto begin = static_cast<std::uint32_t>(layout_.outputs.size());
      layout_.outputs.resize(begin + graph_.nodes[n].outputs.size());
      layout_.nodes[n].outputs = {begin, static_cast<std::uint32_t>(layout_.outputs.size())};
      layout_.nodes[n].recorded = RecordedSegment(graph_.nodes[n]) >= 0;
    }
    num_slots_ = static_cast<std::uint32_t>(layout_.outputs.size());
  }

  absl::Status ReadBackwards() {
    for (const Node& node : graph_.nodes) {
      if (node.op != "Backward") continue;
      WEIR_ASSIGN_OR_RETURN(const BackwardShape shape, BackwardShapeOf(node));
      ++layout_.backwards[segments_.Of(shape.segment)];
      for (std::size_t i = 0; i < shape.num_xs; ++i) {
        const Edge& x = node.inputs[2 * shape.num_ys + i];
        if (!IsInside(x, shape.segment)) leaves_.emplace(LeafKey(shape.segment, SlotOf(x)), kNone);
      }
    }
    return absl::OkStatus();
  }

  bool IsInside(const Edge& edge, std::int64_t segment) const {
    return segment >= 0 && RecordedSegment(NodeAt(edge.node)) == segment;
  }

  // The segment within which a node sees its input `position`; -1 for none.
  static std::int64_t SegmentOfInput(const Node& node, std::size_t position) {
    if (node.op != "Backward") return RecordedSegment(node);
    const BackwardShape shape = BackwardShapeOf(node).value();
    const bool is_gradient = position >= shape.num_ys && position < 2 * shape.num_ys;
    return is_gradient ? -1 : shape.segment;
  }

  void FindLiveOutputs() {
    for (const Node& node : graph_.nodes) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const Edge& input = node.inputs[i];
        if (input.is_control() || !IsInside(input, SegmentOfInput(node, i))) continue;
        OutputPlan& output = layout_.outputs[SlotOf(input)];
        if (output.live == kNone) output.live = num_slots_++;
      }
    }
  }

  void NumberLeaves() {
    layout_.first_leaf = num_slots_;
    for (auto& [key, slot] : leaves_) {
      slot = num_slots_++;
      layout_.leaf_sources.push_back(key.second);
    }
    layout_.references.assign(num_slots_, 0);
  }

  std::uint32_t InputSlot(const Edge& input, std::int64_t segment) const {
    const std::uint32_t slot = SlotOf(input);
    if (IsInside(input, segment)) return layout_.outputs[slot].live;
    const auto leaf = leaves_.find({segment, slot});
    return leaf == leaves_.end() ? slot : leaf->second;
  }

  void AddInputs(std::size_t n) {
    const Node& node = graph_.nodes[n];
    NodePlan& plan = layout_.nodes[n];
    plan.inputs.begin = Size(layout_.inputs);
    plan.releases.begin = Size(layout_.releases);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i].is_control()) continue;
      const std::uint32_t slot = InputSlot(node.inputs[i], SegmentOfInput(node, i));
      layout_.inputs.push_back(slot);
      Reference(slot);
      // A leaf is made when its first consumer runs: its source has to be there till then.
      if (slot >= layout_.first_leaf) Reference(SlotOf(node.inputs[i]));
    }
    plan.inputs.end = Size(layout_.inputs);
    plan.releases.end = Size(layout_.releases);
    layout_.pending.push_back(static_cast<std::int32_t>(node.inputs.size()));
  }

  void Reference(std::uint32_t slot) {
    layout_.releases.push_back(slot);
    ++layout_.references[slot];
  }

  void AddTargets() {
    std::vector<std::vector<std::uint32_t>> consumers(layout_.outputs.size());
    std::vector<std::vector<std::uint32_t>> controls(graph_.nodes.size());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const Edge& input : graph_.nodes[n].inputs) {
        auto& waiting = input.is_control() ? controls[static_cast<std::size_t>(input.node)]
                                           : consumers[SlotOf(input)];
        waiting.push_back(static_cast<std::uint32_t>(n));
      }
    }
    for (std::size_t i = 0; i < consumers.size(); ++i) {
      layout_.outputs[i].consumers = AppendTargets(consumers[i]);
    }
    for (std::size_t n = 0; n < controls.size(); ++n) {
      layout_.nodes[n].controls = AppendTargets(controls[n]);
    }
  }

  Range AppendTargets(const std::vector<std::uint32_t>& nodes) {
    const std::uint32_t begin = Size(layout_.targets);
    layout_.targets.insert(layout_.targets.end(), nodes.begin(), nodes.end());
    return {begin, Size(layout_.targets)};
  }

  const GraphDef& graph_;
  const SegmentNumbers segments_;
  std::map<LeafKey, std::uint32_t> leaves_;  // -> slot
  std::uint32_t num_slots_ = 0;
  Layout layout_;
};

}  // namespace

std::int64_t RecordedSegment(const Node& node) {
  if (node.op != "Aten" && node.op != "Function" && node.op != "Identity") return -1;
  return graph::AttrOr<std::int64_t>(node, "segment", -1);
}

SegmentNumbers::SegmentNumbers(const GraphDef& graph) {
  for (const Node& node : graph.nodes) {
    if (node.op != "Backward") continue;
    const auto segment = graph::AttrOr<std::int64_t>(node, "segment", -1);
    if (Of(segment) == kNone) segments_.push_back(segment);
  }
}

std::uint32_t SegmentNumbers::Of(std::int64_t segment) const {
  const auto found = std::find(segments_.begin(), segments_.end(), segment);
  return found == segments_.end() ? kNone : static_cast<std::uint32_t>(found - segments_.begin());
}

absl::StatusOr<BackwardShape> BackwardShapeOf(const Node& node) {
  WEIR_ASSIGN_OR_RETURN(const auto num_ys, graph::GetAttr<std::int64_t>(node, "num_ys"));
  WEIR_ASSIGN_OR_RETURN(const auto num_xs, graph::GetAttr<std::int64_t>(node, "num_xs"));
  WEIR_ASSIGN_OR_RETURN(const auto segment, graph::GetAttr<std::int64_t>(node, "segment"));
  const std::int64_t num_inputs = graph::NumDataInputs(node);
  if (num_ys < 0 || num_xs < 0 || num_ys > num_inputs || num_xs > num_inputs ||
      2 * num_ys + num_xs != num_inputs || segment < 0 ||
      node.outputs.size() != static_cast<std::size_t>(num_xs)) {
    return BadNode(node, absl::StrCat("num_ys ", num_ys, ", num_xs ", num_xs, ", segment ", segment,
                                      " do not fit ", num_inputs, " inputs and ",
                                      node.outputs.size(), " outputs"));
  }
  return BackwardShape{.num_ys = static_cast<std::size_t>(num_ys),
                       .num_xs = static_cast<std::size_t>(num_xs),
                       .segment = segment};
}

absl::StatusOr<Layout> MakeLayout(const GraphDef& graph) {
  WEIR_RETURN_IF_ERROR(CheckEdges(graph));
  return LayoutBuilder(graph).Run();
}

}  // namespace weir::executor
