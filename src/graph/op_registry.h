// The ops of the graph: what each node kind takes, gives and may be asked.
//
// clang-format off
//   op             data inputs            attributes                        outputs
//   Placeholder    -                      dtype, shape                      value
//   Const          -                      value: tensor                     value
//   Variable       -                      dtype, shape, initializer* (see   handle, which is no
//                                         initializer_attrs.h), container,  tensor
//                                         trainable, use_locking,
//                                         consistent_reads, read_in_place;
//                                         of one in slices: axis, sizes,
//                                         layout, slice_devices
//   Read           handle                 -                                 value
//   Assign         handle, value          -                                 -
//   AssignAdd      handle, value          -                                 -
//   IsInitialized  handle                 -                                 bool scalar
//   Lookup         handle, ids (int64 of  -                                 rows (each once),
//                  any shape)                                               positions of the ids in
//                                                                           them, their numbers
//   Gather         handle, ids (a list)   -                                 rows
//   ScatterAdd     handle, ids, values    use_locking                       -
//   ScatterUpdate  handle, ids, values    use_locking                       -
//   SumRows        (ids, values)...       sizes, layout (row_shards.h),     (ids, values) for each
//                                         combine: "sum" or "last"          slice
//   AddRows        dense, ids, values     -                                 dense gradient
//   Identity       value                  -                                 value
//   Group          - (control only)       -                                 -
//   Aten           tensors in schema      operator, overload, and one for   as the schema
//                  order                  each argument given that is no
//                                         tensor, by name
//   Function       values                 handle: int                       as declared
//   Gradients      loss, x...             -                                 one for each x
//   Apply          handle, gradient,      rule, scope (of slots), numbers   -
//                  [indices], [step]      of optim/spec_attrs.h; sparse:
//                                         the gradient is values for the
//                                         rows of indices; step: the last
//                                         input is the step's number, from 1
//   ClipGradients  gradients              by: "value", "norm" or            one for each
//                                         "global_norm"; bound: float
//   AddWeightDecay gradient, weight       rate: float                       gradient
//   Ticket         handle of global_step  limit: int (-1: none)             int64 scalar
//   CompleteStep   handle of global_step  -                                 -
//
// Inserted by passes, never by a user:
//   ShardIds       ids                    sizes, layout, variable           ids for each slice; of
//                                                                           Lookup the positions
//                                                                           and the numbers
//   Split          value                  sizes, layout, axis               a part for each slice
//   Feed           -                      index: position among the feeds   value
//   Fetch          value                  index: position among the fetches -
//   Send           value, or only a       edge: int, to: device, control:   -
//                  control input          bool, version_of: name of a node
//                                         (optional)
//   Recv           -                      edge: int, from: device, control: value; none when
//                                         bool                              control
//   Backward       y1..yk, g1..gk,        num_ys, num_xs, segment           a gradient for each x
//                  x1..xn
//   SumGradients   contributions          -                                 sum; absent if all are
//
// clang-format on
//
// How an Aten node's inputs map to its schema: going through the schema's arguments in order, a
// `Tensor` argument takes the next data input, unless the attribute of its name is None; a
// `Tensor[]` or `Tensor?[]` argument takes as many as the int attribute "<name>.size" says. A list
// with holes has the bool list "<name>.present" too, one for each element: false is None and takes
// no input. Any other argument is its attribute, or the schema's default where there is none.
// Device, layout and pin_memory arguments are always None on the graph (the placer decides); a
// Generator argument is filled by the executor from (graph seed, node, step).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "weir/graph.h"

namespace weir::graph {

struct OpInfo {
  std::string_view name;
  bool stateful = false;  // reads or writes the store: placed with its variable
  int handles = 0;        // as many inputs first are variables' handles: must share their device
  bool placed_freely = false;   // but not this one, which ApplyShardMap takes apart before
  bool differentiable = false;  // may be part of a segment that autograd records
  bool internal = false;        // only passes insert it
};

/// nullptr for an unknown op.
const OpInfo* FindOp(std::string_view name);

/// True for a node that must be where its variable is, such as its Read.
bool FollowsVariable(const Node& node);

/// "int", "list of float", "None", ...: what errors call the type of an attribute.
std::string_view AttrTypeName(const AttrValue& value);

/// Attribute access with the node's name in the error (InvalidArgument when missing or of another
/// type).
template <typename T>
absl::StatusOr<T> GetAttr(const Node& node, const std::string& name);
/// The attribute, or `fallback` when it is missing or of another type.
template <typename T>
T AttrOr(const Node& node, const std::string& name, T fallback);

/// Number of data inputs; they come before the control inputs.
int NumDataInputs(const Node& node);

/// Checks a whole graph that came from elsewhere (another process, a file): known ops, edges in
/// range, data before control, outputs that exist, unique names, no cycle, attributes present.
/// InvalidArgument lists every violation. `allow_internal`: also ops that passes insert.
absl::Status Validate(const GraphDef& graph, bool allow_internal);

/// Node indices so that every node comes after its inputs, data and control; stable by index.
/// InvalidArgument naming the nodes of a cycle.
absl::StatusOr<std::vector<int>> TopologicalOrder(const GraphDef& graph);

}  // namespace weir::graph
