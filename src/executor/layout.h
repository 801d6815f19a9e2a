// Lays a partition's values out in slots.
#pragma once

#include "absl/status/statusor.h"
#include "executor/program_impl.h"
#include "weir/graph.h"

namespace weir::executor {

/// InvalidArgument, with the node's name, for a graph whose nodes are not in topological order or
/// whose edges lead nowhere.
absl::StatusOr<Layout> MakeLayout(const GraphDef& graph);

/// The segment that autograd records `node` in, -1 for none. Only operators, functions and
/// identities are recorded; whatever else carries the attribute gives values from outside.
std::int64_t RecordedSegment(const Node& node);

/// Numbers the segments of a partition's Backward nodes from 0, in order of appearance. kNone for a
/// segment that has no Backward node.
class SegmentNumbers {
 public:
  explicit SegmentNumbers(const GraphDef& graph);
  std::uint32_t Of(std::int64_t segment) const;
  std::size_t size() const { return segments_.size(); }

 private:
  std::vector<std::int64_t> segments_;
};

/// How the inputs of a Backward node are laid out: y1..yk, g1..gk, x1..xn.
struct BackwardShape {
  std::size_t num_ys = 0;
  std::size_t num_xs = 0;
  std::int64_t segment = 0;
};
absl::StatusOr<BackwardShape> BackwardShapeOf(const Node& node);

}  // namespace weir::executor
