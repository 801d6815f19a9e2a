#include <utility>

#include "weir/strategy.h"

namespace weir {

Operation ApplyGradient(const OptimizerSpec& optimizer, const Variable& variable, Output gradient) {
  if (!variable.handle().valid())
    return {};  // as an operation that was never assigned: Run says so
  Graph& graph = *variable.handle().graph();
  if (!gradient.valid() || gradient.graph() != &graph) {
    graph.AddError(absl::InvalidArgumentError("the gradient of '" + variable.name() +
                                              "' is not of its graph"));
    return {};
  }
  Node node;
  node.name = variable.name() + "/apply";
  node.op = "Apply";
  node.inputs = {{variable.handle().node(), 0}, {gradient.node(), gradient.index()}};
  node.attrs["rule"] = optimizer.rule;
  node.attrs["scope"] = optimizer.rule;
  node.attrs["use_locking"] = optimizer.use_locking;
  for (const auto& [name, value] : optimizer.hyperparameters) node.attrs["hyper." + name] = value;
  return graph.AddNode(std::move(node));
}

}  // namespace weir
