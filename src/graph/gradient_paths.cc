#include "graph/gradient_paths.h"

#include <algorithm>
#include <ranges>

#include "graph/node_util.h"
#include "graph/op_registry.h"

namespace weir::graph {
namespace {

// An Identity is differentiable whatever was known of it when the graph was built: it may have
// been made of a leaf.
bool IsDifferentiable(const Node& node, const OutputInfo& output) {
  return IsRecordable(node) && HasGradient(output) &&
         (output.differentiable || node.op == "Identity");
}

class PathFinder {
 public:
  PathFinder(const GraphDef& graph, const OutputRow& row)
      : graph_(graph), row_(row), depends_(row.size(), false) {
    paths_.on_path.assign(row.size(), false);
    paths_.recorded.assign(graph.nodes.size(), false);
  }

  // From the wanted tensors to all that depends on them.
  void GoForward(const std::vector<int>& order, const std::vector<Edge>& wanted) {
    for (const Edge& x : wanted) depends_[row_.At(x)] = true;
    for (const int n : order) {
      const Node& node = NodeAt(graph_, n);
      if (!IsRecordable(node) || !AnyInputDepends(node)) continue;
      for (std::size_t o = 0; o < node.outputs.size(); ++o) {
        if (IsDifferentiable(node, node.outputs[o])) depends_[row_.At(OutputOf(n, o))] = true;
      }
    }
  }

  // From the loss back along what depends on a wanted tensor.
  void GoBack(const std::vector<int>& order, const Edge& loss) {
    paths_.on_path[row_.At(loss)] = depends_[row_.At(loss)];
    for (const int n : std::views::reverse(order)) {
      if (!IsRecordable(NodeAt(graph_, n)) || !GradientArrives(n)) continue;
      for (const Edge& input : NodeAt(graph_, n).inputs) {
        if (!Depends(input)) continue;
        paths_.on_path[row_.At(input)] = true;
        paths_.recorded[static_cast<std::size_t>(n)] = true;
      }
    }
  }

  GradientPaths Take() { return std::move(paths_); }

 private:
  static Edge OutputOf(int node, std::size_t output) {
    return {.node = node, .output = static_cast<int>(output)};
  }

  bool Depends(const Edge& input) const {
    return !input.is_control() && depends_[row_.At(input)] && HasGradient(InfoOf(graph_, input));
  }

  bool AnyInputDepends(const Node& node) const {
    return std::ranges::any_of(node.inputs, [this](const Edge& input) { return Depends(input); });
  }

  bool GradientArrives(int n) const {
    const Node& node = NodeAt(graph_, n);
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (paths_.on_path[row_.At(OutputOf(n, o))] && IsDifferentiable(node, node.outputs[o])) {
        return true;
      }
    }
    return false;
  }

  const GraphDef& graph_;
  const OutputRow& row_;
  std::vector<bool> depends_;
  GradientPaths paths_;
};

}  // namespace

bool IsRecordable(const Node& node) {
  const OpInfo* op = FindOp(node.op);
  return op != nullptr && op->differentiable;
}

bool HasGradient(const OutputInfo& output) {
  return at::isFloatingType(output.dtype);
}

OutputRow::OutputRow(const GraphDef& graph) {
  first_.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    first_.push_back(size_);
    size_ += node.outputs.size();
  }
}

GradientPaths FindGradientPaths(const GraphDef& graph, const std::vector<int>& order,
                                const OutputRow& row, const Edge& loss,
                                const std::vector<Edge>& wanted) {
  PathFinder finder(graph, row);
  finder.GoForward(order, wanted);
  finder.GoBack(order, loss);
  return finder.Take();
}

}  // namespace weir::graph
