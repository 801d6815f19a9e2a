#include "graph/backward.h"

#include <limits>
#include <ranges>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weir::graph {
namespace {

class BackwardBuilder {
 public:
  BackwardBuilder(GraphDef& graph, FreshNames& names, const ForwardGraph& forward,
                  const LossRequest& request)
      : graph_(graph),
        names_(names),
        forward_(forward),
        request_(request),
        paths_(FindGradientPaths(graph, forward.order, forward.row, request.loss, request.wanted)),
        wanted_(forward.row.size(), false),
        sums_(graph, names, forward.devices, request.name) {
    for (const Edge& x : request.wanted) wanted_[forward.row.At(x)] = true;
  }

  absl::StatusOr<BackwardPart> Run() {
    CollectSegments();
    WEIR_RETURN_IF_ERROR(CheckWanted());
    if (OnPath(request_.loss)) AddSeed();
    // All consumers of a segment's outputs are in segments of later stages: those come first.
    for (const auto& [key, nodes] : std::views::reverse(part_.recorded)) AddSegment(key, nodes);
    for (const Edge& x : request_.wanted) part_.gradients.push_back(GradientOf(x));
    return std::move(part_);
  }

 private:
  using Key = std::pair<int, int>;  // node, output

  bool OnPath(const Edge& edge) const { return paths_.on_path[forward_.row.At(edge)]; }
  bool IsRecorded(int node) const { return paths_.recorded[static_cast<std::size_t>(node)]; }
  bool IsWanted(const Edge& edge) const { return wanted_[forward_.row.At(edge)]; }
  SegmentKey SegmentOf(int node) const {
    return {forward_.stages[static_cast<std::size_t>(node)], forward_.devices.of_node(node)};
  }

  void CollectSegments() {
    for (const int n : forward_.order) {
      if (IsRecorded(n)) part_.recorded[SegmentOf(n)].push_back(n);
    }
  }

  // Autograd can give the gradient of a leaf or of what it has recorded, nothing else.
  absl::Status CheckWanted() const {
    for (const Edge& x : request_.wanted) {
      if (!OnPath(x) || !IsRecorded(x.node) || InfoOf(graph_, x).differentiable ||
          NodeAt(graph_, x.node).op == "Identity") {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "gradients '", request_.name, "': no gradient passes through '", TensorName(graph_, x),
          "', an output that its operator does not differentiate"));
    }
    return absl::OkStatus();
  }

  int AddNode(Node node) {
    graph_.nodes.push_back(std::move(node));
    return static_cast<int>(graph_.nodes.size()) - 1;
  }

  // The gradient of the loss with respect to itself.
  void AddSeed() {
    Node node;
    node.name = names_.Make(request_.name + "/ones_like");
    node.op = "Aten";
    node.attrs = {{"operator", "aten::ones_like"}, {"overload", ""}};
    node.device = NodeAt(graph_, request_.loss.node).device;
    node.inputs = {request_.loss};
    node.inputs.insert(node.inputs.end(), request_.controls.begin(), request_.controls.end());
    node.outputs = {WithoutGradient(request_.loss)};
    const Edge seed{.node = AddNode(std::move(node)), .output = 0};
    sums_.Add(request_.loss, seed, std::numeric_limits<int>::max(),
              forward_.devices.of_node(request_.loss.node));
    part_.waits_for_controls = true;
  }

  OutputInfo WithoutGradient(const Edge& edge) const {
    OutputInfo info = InfoOf(graph_, edge);
    info.differentiable = false;
    return info;
  }

  // Outputs at which gradients have arrived from later segments, or the loss itself.
  std::vector<Edge> SegmentOutputs(const std::vector<int>& nodes) const {
    std::vector<Edge> ys;
    for (const int n : nodes) {
      for (std::size_t o = 0; o < NodeAt(graph_, n).outputs.size(); ++o) {
        const Edge y{.node = n, .output = static_cast<int>(o)};
        if (sums_.Has(y)) ys.push_back(y);
      }
    }
    return ys;
  }

  bool IsInside(const SegmentKey& segment, const Edge& edge) const {
    return IsRecorded(edge.node) && SegmentOf(edge.node) == segment;
  }

  // What autograd is asked the gradients of: tensors that come into the segment, and those made
  // inside that somebody wants.
  std::vector<Edge> SegmentInputs(const SegmentKey& segment, const std::vector<int>& nodes) const {
    std::vector<Edge> xs;
    std::vector<bool> seen(forward_.row.size(), false);
    for (const int n : nodes) {
      for (const Edge& input : NodeAt(graph_, n).inputs) {
        if (input.is_control() || !OnPath(input) || seen[forward_.row.At(input)]) continue;
        seen[forward_.row.At(input)] = true;
        if (!IsInside(segment, input) || IsWanted(input)) xs.push_back(input);
      }
    }
    return xs;
  }

  void AddSegment(const SegmentKey& segment, const std::vector<int>& nodes) {
    const std::vector<Edge> ys = SegmentOutputs(nodes);
    const std::vector<Edge> xs = SegmentInputs(segment, nodes);
    Node node;
    node.name = names_.Make(absl::StrCat(request_.name, "/backward"));
    node.op = "Backward";
    node.device = forward_.devices.name(segment.second);
    node.attrs = {{"num_ys", static_cast<std::int64_t>(ys.size())},
                  {"num_xs", static_cast<std::int64_t>(xs.size())}};
    node.inputs = ys;
    for (const Edge& y : ys) node.inputs.push_back(sums_.Total(y));
    node.inputs.insert(node.inputs.end(), xs.begin(), xs.end());
    for (const Edge& x : xs) node.outputs.push_back(WithoutGradient(x));
    const int backward = AddNode(std::move(node));
    part_.backward_nodes.emplace_back(segment, backward);
    for (std::size_t i = 0; i < xs.size(); ++i) {
      Deliver(segment, xs[i], {.node = backward, .output = static_cast<int>(i)});
    }
  }

  // The gradient of a tensor made inside the segment is whole: what came from later segments went
  // in as the gradient of an output. Others may get more from other segments.
  void Deliver(const SegmentKey& segment, const Edge& x, const Edge& gradient) {
    if (IsInside(segment, x)) {
      inner_.emplace(Key(x.node, x.output), gradient);
    } else {
      sums_.Add(x, gradient, segment.first, segment.second);
    }
  }

  Edge GradientOf(const Edge& x) {
    const auto inner = inner_.find({x.node, x.output});
    return inner != inner_.end() ? inner->second : sums_.Total(x);
  }

  GraphDef& graph_;
  FreshNames& names_;
  const ForwardGraph& forward_;
  const LossRequest& request_;
  const GradientPaths paths_;
  std::vector<bool> wanted_;  // by output
  GradientSums sums_;
  std::map<Key, Edge> inner_;
  BackwardPart part_;
};

}  // namespace

absl::StatusOr<BackwardPart> AddBackward(GraphDef& graph, FreshNames& names,
                                         const ForwardGraph& forward, const LossRequest& request) {
  return BackwardBuilder(graph, names, forward, request).Run();
}

}  // namespace weir::graph
