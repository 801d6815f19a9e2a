#include <ATen/Functions.h>

#include <utility>

#include "optim/spec_attrs.h"
#include "strategy/apply_node.h"
#include "weir/ops.h"
#include "weir/strategy.h"

namespace weir {
namespace strategy {

bool CountsSteps(const OptimizerSpec& optimizer) {
  return optimizer.counts_steps || !optimizer.learning_rate.is_constant();
}

Operation AddApply(const OptimizerSpec& optimizer, const VariableGradient& gradient, Output step) {
  const Output handle = gradient.variable.handle();
  Node node;
  node.name = gradient.variable.name() + "/apply";
  node.op = "Apply";
  node.inputs = {{handle.node(), 0}, {gradient.gradient.node(), gradient.gradient.index()}};
  node.attrs["scope"] = optimizer.rule;
  optim::SetSpecAttrs(optimizer, node.attrs);
  if (gradient.is_sparse()) {
    node.inputs.push_back({gradient.indices.node(), gradient.indices.index()});
    node.attrs["sparse"] = true;
  }
  if (CountsSteps(optimizer)) {
    node.inputs.push_back({step.node(), step.index()});
    node.attrs["step"] = true;
  }
  return handle.graph()->AddNode(std::move(node));
}

Operation ApplyChecked(const OptimizerSpec& optimizer, const VariableGradient& gradient) {
  if (!gradient.variable.handle().valid())
    return {};  // as an operation that was never assigned: Run says so
  Graph& graph = *gradient.variable.handle().graph();
  const auto is_of_graph = [&](const Output& output) {
    return output.valid() && output.graph() == &graph;
  };
  if (!is_of_graph(gradient.gradient) || (gradient.is_sparse() && !is_of_graph(gradient.indices))) {
    graph.AddError(absl::InvalidArgumentError("the gradient of '" + gradient.variable.name() +
                                              "' is not of its graph"));
    return {};
  }
  Output step;
  if (CountsSteps(optimizer))
    step = ops::add(GlobalStep(graph), graph.Const(at::ones({}, at::kLong), "one"));
  return AddApply(optimizer, gradient, step);
}

}  // namespace strategy

Operation ApplyGradient(const OptimizerSpec& optimizer, const Variable& variable, Output gradient) {
  return strategy::ApplyChecked(optimizer, {variable, gradient});
}

Operation ApplySparseGradient(const OptimizerSpec& optimizer, const Variable& variable,
                              Output indices, Output values) {
  if (!indices.valid()) return ApplyGradient(optimizer, variable, {});
  return strategy::ApplyChecked(optimizer, {variable, values, indices});
}

}  // namespace weir
