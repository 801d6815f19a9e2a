// The passes that turn a graph into what each device runs. Pure functions: no threads, no sockets,
// no store.
//
// - ApplyShardMap, once for a session: variables that are cut into slices become several, and
//   lookups become gathers from them.
// - PlaceGraph, once for a session: every node gets a full device.
// - PruneGraph, per (feeds, fetches, targets): only what they need, with Feed and Fetch nodes.
// - ExpandGradients: cuts the placed graph into segments and writes Backward nodes for Gradients
//   nodes.
// - HoistTickets: lets gradients wait for a step's ticket where they are made.
// - PartitionGraph: one graph for each device, joined by Send/Recv pairs.
//
// A plan is MakePlan = PruneGraph, ExpandGradients, HoistTickets, PartitionGraph of a placed graph.
// All of them expect a graph that graph::Validate (op_registry.h) accepts, and give the same result
// for the same graph every time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/cluster_spec.h"
#include "cluster/device.h"
#include "graph/shard_map.h"
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
  /// Where no device is of the type and number that is asked for, or two that share a device ask
  /// for different ones, any device of the task will do. Job and task always hold.
  bool soft_placement = false;

  /// CPU:0..cpus_per_task-1 of every task.
  static DeviceSet FromCluster(const ClusterSpec& cluster, const TaskId& session_task,
                               int cpus_per_task = 1);
};

/// Writes the graph of the slices that `map` names. The names of values and targets stay: what was
/// node "n" is still there under that name, with the same first output.
///   Variable      one for each slice
///   Read          a Read for each slice, concatenated on the device that those who compute with
///   the
///                 value ask for, where they agree
///   Lookup        ShardIds where the Lookup was asked for: ids out of range end here, each id goes
///                 once to the slice that holds it; a Gather from each slice; their rows
///                 concatenated. Of variables that are whole, too.
///   Gather        the same, and the rows in the order of the ids
///   Apply, Assign, AssignAdd, ScatterAdd, ScatterUpdate
///                 one for each slice, with its part of the values, which are dealt out on the same
///                 device
///   Average       one for each slice, by the same slice of the other variable
/// What waits for an update waits for those of all slices; a Group of them bears its name.
/// InvalidArgument for a lookup in a variable that is not cut by rows, for ops that need a whole
/// variable (Ticket, CompleteStep), and for nodes that do not fit their variables: the graph may
/// come from anywhere. A graph without slices and lookups is returned as it is.
absl::StatusOr<GraphDef> ApplyShardMap(GraphDef graph, const ShardMap& map);

/// Gives every node a full device (docs/ARCHITECTURE.md, "Placement"). In this order:
///   1. Requests of nodes that must share a device are merged: an op with a handle input joins its
///      variable, and where their requests conflict the variable wins; then explicit colocations,
///      where a conflict is an error.
///   2. Of the devices that match, the session's own task comes first, then the order of jobs and
///      tasks. So a node without a request goes to the session's own task, and "/job:worker" in a
///      worker's session means that worker.
///   3. Heuristic A: a source with one output whose consumers are all on one device goes there.
///      Heuristic B: an op that only looks at its input's sizes goes where the input is. Both only
///      where requests allow it.
/// A Function goes to, and must be on, the session's task. There are kernels for CPUs only.
/// InvalidArgument, one line for each mistake, with the original's texts: "Cannot assign a device
/// for operation 'n': was explicitly assigned to ... but available devices are [ ... ]", "Cannot
/// colocate nodes ...: Cannot merge devices ...", "Could not satisfy explicit device
/// specification ...". `graph` is changed only if all is well.
absl::Status PlaceGraph(GraphDef& graph, const DeviceSet& devices);

/// Keeps what `signature` needs. A fed output, of a placeholder or of any other node, is replaced
/// by a Feed node; a fetch gets a Fetch node; both sit on CPU:0 of `session_task`. The name of a
/// variable means the value of its Read. NotFound for an unknown name; InvalidArgument for a
/// placeholder that is needed and not fed, for feeding one output twice, or for feeding or fetching
/// what is no tensor. A feed that nothing needs is left out.
absl::StatusOr<GraphDef> PruneGraph(const GraphDef& placed, const Signature& signature,
                                    const TaskId& session_task);

/// Writes the backward part of the graph. Every node gets its stage: `stage = max over all inputs
/// of stage(input) + (same device ? 0 : 1)`; nodes of one device and stage form a segment. The
/// nodes through which a gradient passes, and only those, carry their segment's number as the int
/// attribute "segment" (from 0, in order of stage, then device): these autograd records. A
/// segment's other inputs are leaves. Gradients nodes are replaced, and their consumers re-wired
/// to:
///   Backward      one per segment and loss. Its ys are outputs of the segment, its gs their
///                 gradients (an absent one counts nothing); its xs are leaves of the segment, and
///                 tensors made inside it that somebody wants. A tensor may be both a y and an x.
///   SumGradients  where several gradients of one tensor meet, in the order of their inputs; one
///                 without inputs is the gradient of what the loss does not depend on: absent.
///   Aten          "aten::ones_like" of the loss, the first gradient.
/// Gradients nodes of one loss share their Backward nodes. A gradient that nobody consumes is not
/// computed. InvalidArgument for a loss that is no floating point scalar and for an x that is no
/// floating point tensor; Unimplemented, with the node's name, for gradients of gradients.
absl::Status ExpandGradients(GraphDef& graph);

/// "No push before the ticket": where an Apply must wait for a Ticket and its gradient comes from
/// another device, the gradient waits there instead (an Identity with the control edge). So no
/// gradient leaves before the step has its ticket, and the ticket crosses once to the device that
/// makes gradients, where parameters go anyway, and not from one ps to another. Contributions to a
/// sum beside the variable wait each where it is made.
void HoistTickets(GraphDef& graph);

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

/// Splits by device. One Send/Recv pair per (output, destination device) however many consumers. A
/// control edge crosses as a pair of its own (one per (node, destination device)), without a
/// tensor, unless a value of the same node goes to the same device: then its arrival says that the
/// node has run. (Not a Backward node's, which leaves before the node ends.) Pairs are numbered
/// from 1 in topological order of their sources. The Send of a gradient for an Apply, or for the
/// sum beside it, carries "version_of": the name of the node of the same partition that holds the
/// parameters it was computed from, if they came here; its version is echoed. InvalidArgument for a
/// node that has no device and for a variable's handle that would cross.
absl::StatusOr<PartitionedGraph> PartitionGraph(const GraphDef& graph);

/// PruneGraph, ExpandGradients, HoistTickets, PartitionGraph.
absl::StatusOr<PartitionedGraph> MakePlan(const GraphDef& placed, const Signature& signature,
                                          const TaskId& session_task);

/// The placed, partitioned graph for people: each device with its nodes, then each crossing edge
/// with dtype, shape and bytes, then the totals per pair of devices.
std::string DumpText(const PartitionedGraph& graph);

}  // namespace weir::graph
