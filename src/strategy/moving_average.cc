#include "weir/moving_average.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <string>
#include <utility>

#include "optim/spec_attrs.h"
#include "weir/ops.h"
#include "weir/strategy.h"

namespace weir {
namespace {

// The update of `variable` that `step` waits for itself, or else all of `step`.
Operation UpdateIn(Graph& graph, Operation step, const Variable& variable) {
  for (const Edge& input : graph.node(step.node()).inputs) {
    if (!input.is_control()) continue;
    const Node& node = graph.node(input.node);
    if (node.op == "Apply" && node.inputs[0].node == variable.handle().node())
      return {&graph, input.node};
  }
  return step;
}

// Counted from 1: the number of the ticket where the graph draws one.
Output StepNumber(Graph& graph) {
  const std::vector<Node>& nodes = graph.def().nodes;
  const auto ticket =
      std::ranges::find_if(nodes, [](const Node& node) { return node.op == "Ticket"; });
  if (ticket != nodes.end()) return {&graph, static_cast<int>(ticket - nodes.begin()), 0};
  return ops::add(GlobalStep(graph), graph.Const(at::ones({}, at::kLong), "one"));
}

}  // namespace

MovingAverages::MovingAverages(Graph& graph, const std::vector<Variable>& variables,
                               const MovingAverage& options)
    : graph_(graph), options_(options) {
  for (const Variable& variable : variables) Add(variable);
}

void MovingAverages::Add(const Variable& variable) {
  if (!variable.handle().valid() || variable.handle().graph() != &graph_) {
    graph_.AddError(absl::InvalidArgumentError("MovingAverages: a variable is not of this graph"));
    return;
  }
  Node node = graph_.node(variable.handle().node());
  const bool is_cut = node.attrs.contains("slice_devices");
  node.name += "/ExponentialMovingAverage";
  node.attrs["trainable"] = false;
  node.attrs["drawn_as"] = variable.name();
  node.attrs["use_locking"] = options_.use_locking;
  node.attrs["read_in_place"] = false;
  // Slices lie where those of the variable do; their devices have been copied with the attributes.
  node.colocation = is_cut ? "" : variable.name();
  node.device.clear();
  const Operation handle = graph_.AddNode(std::move(node));
  Node read{.name = handle.name() + "/read", .op = "Read", .inputs = {{handle.node(), 0}}};
  read.colocation = handle.name();
  const Operation value = graph_.AddNode(std::move(read));
  const Variable average(Output(&graph_, handle.node(), 0), Output(&graph_, value.node(), 0));
  if (averages_.emplace(variable.name(), average).second) variables_.push_back(variable);
}

Operation MovingAverages::UpdateAfter(Operation step) {
  if (!step.valid()) return {};  // as an operation that was never assigned: Run says so
  const Output number = options_.warm_up ? StepNumber(graph_) : Output();
  std::vector<Operation> updates = {step};
  for (const Variable& variable : variables_)
    updates.push_back(AddUpdate(variable, of(variable), UpdateIn(graph_, step, variable), number));
  return graph_.Group(updates, "train_and_average");
}

Operation MovingAverages::AddUpdate(const Variable& variable, const Variable& average,
                                    Operation after, Output step_number) const {
  Node node;
  node.name = average.name() + "/update";
  node.op = "Average";
  node.inputs = {{average.handle().node(), 0}, {variable.handle().node(), 0}};
  optim::SetSpecAttrs(options_, node.attrs);
  if (step_number.valid()) {
    node.inputs.push_back({step_number.node(), step_number.index()});
    node.attrs["step"] = true;
  }
  const Operation update = graph_.AddNode(std::move(node));
  graph_.AddControlEdge(after, update);
  return update;
}

Variable MovingAverages::of(const Variable& variable) const {
  const auto found = variable.handle().valid() ? averages_.find(variable.name()) : averages_.end();
  if (found != averages_.end()) return found->second;
  graph_.AddError(absl::InvalidArgumentError(
      "MovingAverages: no average is kept of variable '" +
      (variable.handle().valid() ? variable.name() : std::string("(never made)")) + "'"));
  return {};
}

}  // namespace weir
