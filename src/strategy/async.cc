#include <algorithm>
#include <utility>
#include <vector>

#include "strategy/apply_node.h"
#include "strategy/gradient_options.h"
#include "strategy/variable_gradients.h"
#include "weir/strategy.h"

namespace weir {
namespace {

Operation AddTicket(Graph& graph, const Variable& global_step, std::int64_t limit) {
  Node node;
  node.name = "ticket";
  node.op = "Ticket";
  node.inputs = {{global_step.handle().node(), 0}};
  node.attrs["limit"] = limit;
  node.outputs = {{at::kLong, std::vector<std::int64_t>{}, false}};
  return graph.AddNode(std::move(node));
}

Operation AddCompleteStep(Graph& graph, const Variable& global_step) {
  Node node;
  node.name = "train";
  node.op = "CompleteStep";
  node.inputs = {{global_step.handle().node(), 0}};
  return graph.AddNode(std::move(node));
}

bool HasTicket(const Graph& graph) {
  const std::vector<Node>& nodes = graph.def().nodes;
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Node& node) { return node.op == "Ticket"; });
}

class AsyncStrategy final : public Strategy {
 public:
  explicit AsyncStrategy(const AsyncOptions& options) : options_(options) {}

  std::string name() const override { return "async"; }

  using Strategy::Minimize;
  Operation Minimize(const OptimizerSpec& optimizer, Output loss,
                     const GradientOptions& options) override {
    if (!loss.valid()) return {};  // as an operation that was never assigned: Run says so
    Graph& graph = *loss.graph();
    if (HasTicket(graph)) {
      graph.AddError(absl::InvalidArgumentError(
          "Minimize: the graph has a training step already; minimize the sum of several losses, or "
          "use Gradients and ApplyGradient for what is trained beside it"));
      return {};
    }
    const Variable global_step = PlacedGlobalStep(graph);
    std::vector<strategy::VariableGradient> gradients = strategy::GradientsOf(loss);
    if (gradients.empty()) return {};  // the graph holds the error
    strategy::ApplyOptions(options, gradients);
    const Operation ticket = AddTicket(graph, global_step, options_.stop_at_step);
    const Output step(&graph, ticket.node(), 0);
    const Operation complete = AddCompleteStep(graph, global_step);
    for (const strategy::VariableGradient& gradient : gradients) {
      const Operation apply = strategy::AddApply(optimizer, gradient, step);
      graph.AddControlEdge(ticket, apply);
      graph.AddControlEdge(apply, complete);
    }
    return complete;
  }

 private:
  Variable PlacedGlobalStep(Graph& graph) const {
    if (!options_.global_step_device) return GlobalStep(graph);
    DeviceScope scope(graph, options_.global_step_device);
    return GlobalStep(graph);
  }

  const AsyncOptions options_;
};

}  // namespace

std::unique_ptr<Strategy> NewAsyncStrategy(const AsyncOptions& options) {
  return std::make_unique<AsyncStrategy>(options);
}

Variable GlobalStep(Graph& graph) {
  const int existing = graph.FindNode(kGlobalStepName);
  const int read = graph.FindNode(std::string(kGlobalStepName) + "/read");
  if (existing >= 0 && read >= 0) return {Output(&graph, existing, 0), Output(&graph, read, 0)};
  VariableOptions options;
  options.trainable = false;
  return graph.Variable(kGlobalStepName, Zeros({}, at::kLong), options);
}

}  // namespace weir
