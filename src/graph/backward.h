// The backward part of one loss: its Backward nodes, from the last segment to the first.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/gradient_paths.h"
#include "graph/gradient_sums.h"
#include "graph/node_util.h"
#include "graph/stages.h"
#include "weir/graph.h"

namespace weir::graph {

/// A segment is named by its stage, then the number of its device; so segments compare in the
/// order in which they run.
using SegmentKey = std::pair<int, int>;

/// What is wanted of one loss.
struct LossRequest {
  Edge loss;
  std::vector<Edge> controls;  // what the backward part has to wait for, beside the loss
  std::vector<Edge> wanted;    // tensors, each once
  std::string name;            // prefix of the nodes that are made
};

/// What is known of the graph as it was before any backward part was added.
struct ForwardGraph {
  const std::vector<int>& order;
  const std::vector<int>& stages;
  const DeviceNumbers& devices;
  const OutputRow& row;
};

/// The backward part that was added for one loss.
struct BackwardPart {
  std::vector<Edge> gradients;                             // one for each wanted tensor
  std::map<SegmentKey, std::vector<int>> recorded;         // nodes autograd records, by segment
  std::vector<std::pair<SegmentKey, int>> backward_nodes;  // not numbered yet
  bool waits_for_controls = false;                         // any of it waits for the controls
};

/// Adds the nodes of one loss to `graph`. InvalidArgument when a wanted tensor is made inside a
/// segment by an operator that gives no gradient.
absl::StatusOr<BackwardPart> AddBackward(GraphDef& graph, FreshNames& names,
                                         const ForwardGraph& forward, const LossRequest& request);

}  // namespace weir::graph
