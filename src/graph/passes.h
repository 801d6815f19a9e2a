// The passes that turn a graph into what each device runs. Pure functions: no threads, no sockets,
// no store.
//
//   PlaceGraph       once for a session: every node gets a full device
//   PruneGraph       per (feeds, fetches, targets): only what they need, with Feed and Fetch nodes
//   ExpandGradients  cuts the placed graph into segments and writes Backward nodes for Gradients
//   nodes PartitionGraph   one graph for each device, joined by Send/Recv pairs
//
// A plan is MakePlan = PruneGraph, ExpandGradients, HoistTickets, PartitionGraph of a placed graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "cluster/device.h"
#include "weir/graph.h"

namespace weir::graph {

/// What a plan is made for. Names are "node" or "node:output"; targets are node names.
struct Signature {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  auto operator<=>(const Signature&) const = default;
};

/// The devices a graph may be placed on.
struct DeviceSet {
  std::vector<DeviceSpec> devices;  // all fields set
  TaskId session_task;              // where a free node goes, on its CPU:0

  /// CPU:0..cpus_per_task-1 of every task.
  static DeviceSet FromCluster(const ClusterSpec& cluster, const TaskId& session_task,
                               int cpus_per_task = 1);
};

/// Gives every node a full device (docs/ARCHITECTURE.md, "Placement"): requests, colocation groups
/// (an explicit `colocation`, and every op with a handle input joins its variable; on a conflict
/// with the variable's request the variable wins), heuristic A (a source with one output and one
/// consuming device goes to its consumer), heuristic B (metadata ops follow their input); what is
/// still free goes to the session's own task. A Function goes to, and must be on, the session's
/// task. InvalidArgument with the original's texts: "Cannot assign a device for operation 'n': ...
/// but available devices are [ ... ]", "Cannot colocate nodes ...".
absl::Status PlaceGraph(GraphDef& graph, const DeviceSet& devices);

/// Keeps what `signature` needs. A fed output is replaced by a Feed node, a fetch gets a Fetch
/// node; both sit on CPU:0 of `session_task`. NotFound for an unknown name; InvalidArgument for a
/// placeholder that is needed and not fed, for feeding one output twice, or for feeding or fetching
/// what is no tensor.
absl::StatusOr<GraphDef> PruneGraph(const GraphDef& placed, const Signature& signature,
                                    const TaskId& session_task);

/// Writes the backward part of the graph. Every node gets its segment: `stage = max over all inputs
/// of stage(input) + (same device ? 0 : 1)`, nodes of one device and stage form a segment, kept as
/// the int attribute "segment" (numbered from 0 in order of stage, then device) on the nodes that
/// autograd records, i.e. those in segments that some Backward node needs. Gradients nodes are
/// replaced by Backward and SumGradients nodes; their outputs' consumers are re-wired. Gradients of
/// gradients: Unimplemented with the node's name.
absl::Status ExpandGradients(GraphDef& graph);

/// "No push before the ticket": an Apply that must wait for a Ticket on another device than the one
/// where its gradient is made lets the gradient wait there instead (an Identity with the control
/// edge), so that the ticket crosses once to that device, with the parameters, and not from one ps
/// to another.
absl::Status HoistTickets(GraphDef& graph);

/// One edge that crosses devices.
struct CrossEdge {
  std::uint32_t id = 0;  // dense from 1
  std::string tensor;    // "node:0", or "^node" for a control edge
  std::string from;      // device
  std::string to;        // device
  bool control = false;
  at::ScalarType dtype = at::ScalarType::Undefined;
  Shape shape;
  bool operator==(const CrossEdge&) const = default;
};

struct PartitionDef {
  std::string device;
  GraphDef graph;  // nodes in topological order
};

struct PartitionedGraph {
  std::vector<PartitionDef> partitions;  // sorted by device
  std::vector<CrossEdge> edges;
  int num_feeds = 0;
  int num_fetches = 0;
};

/// Splits by device. One Send/Recv pair per (output, destination device) however many consumers;
/// control edges cross as pairs of their own (one per (node, destination device)), without a
/// tensor. The Send of a gradient carries "version_of": the name of the Read (or of its Recv) in
/// the same partition whose version it echoes.
absl::StatusOr<PartitionedGraph> PartitionGraph(const GraphDef& graph);

/// PruneGraph, ExpandGradients, HoistTickets, PartitionGraph.
absl::StatusOr<PartitionedGraph> MakePlan(const GraphDef& placed, const Signature& signature,
                                          const TaskId& session_task);

/// The placed, partitioned graph for people: each device with its nodes, then each crossing edge
/// with dtype, shape and bytes, then the totals per pair of devices.
std::string DumpText(const PartitionedGraph& graph);

}  // namespace weir::graph
