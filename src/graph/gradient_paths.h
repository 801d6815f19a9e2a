// Which outputs the gradient of a loss passes on its way to what it is wanted for.
#pragma once

#include <vector>

#include "weir/graph.h"

namespace weir::graph {

/// May autograd record this node? (Aten, Function and Identity nodes.)
bool IsRecordable(const Node& node);

/// A floating point tensor: only such have gradients.
bool HasGradient(const OutputInfo& output);

/// Lays the outputs of all nodes in one row, so that facts about outputs are flat vectors.
class OutputRow {
 public:
  explicit OutputRow(const GraphDef& graph);
  std::size_t size() const { return size_; }
  std::size_t At(const Edge& edge) const {
    return first_[static_cast<std::size_t>(edge.node)] + static_cast<std::size_t>(edge.output);
  }

 private:
  std::vector<std::size_t> first_;  // by node
  std::size_t size_ = 0;
};

/// The part of a graph that lies between a loss and the tensors whose gradients are wanted.
struct GradientPaths {
  /// By output: a gradient arrives here.
  std::vector<bool> on_path;
  /// By node: the gradient passes through it, from an output to an input.
  std::vector<bool> recorded;
};

/// REQUIRES: `order` is a topological order of `graph`.
GradientPaths FindGradientPaths(const GraphDef& graph, const std::vector<int>& order,
                                const OutputRow& row, const Edge& loss,
                                const std::vector<Edge>& wanted);

}  // namespace weir::graph
