#include "strategy/variable_gradients.h"

#include <algorithm>
#include <string>
#include <utility>

namespace weir::strategy {
namespace {

// Nodes that the value of `from` is computed from, itself included.
std::vector<bool> Ancestors(const Graph& graph, int from) {
  std::vector<bool> seen(graph.def().nodes.size(), false);
  std::vector<int> open = {from};
  while (!open.empty()) {
    const int n = open.back();
    open.pop_back();
    if (seen[static_cast<std::size_t>(n)]) continue;
    seen[static_cast<std::size_t>(n)] = true;
    for (const Edge& input : graph.node(n).inputs)
      if (!input.is_control()) open.push_back(input.node);
  }
  return seen;
}

// Where a loss takes a variable from.
struct Sources {
  Variable variable;
  bool is_read = false;
  std::vector<Operation> lookups;  // Lookup and Gather nodes
};

std::vector<Sources> FindSources(Graph& graph, Output loss) {
  const std::vector<bool> used = Ancestors(graph, loss.node());
  std::vector<Sources> all;
  for (const Variable& variable : graph.trainable_variables()) {
    Sources sources{.variable = variable, .is_read = false, .lookups = {}};
    for (std::size_t n = 0; n < used.size(); ++n) {
      const Node& node = graph.node(static_cast<int>(n));
      const bool looks_up = node.op == "Lookup" || node.op == "Gather";
      if (used[n] && looks_up && node.inputs[0].node == variable.handle().node())
        sources.lookups.emplace_back(&graph, static_cast<int>(n));
    }
    // A variable without influence has an absent gradient, which is a dense one.
    sources.is_read =
        sources.lookups.empty() || used[static_cast<std::size_t>(variable.read().node())];
    all.push_back(std::move(sources));
  }
  return all;
}

std::vector<Output> WantedOf(Graph& graph, const std::vector<Sources>& all) {
  std::vector<Output> wanted;
  for (const Sources& sources : all) {
    if (sources.is_read) wanted.push_back(sources.variable.read());
    for (const Operation& lookup : sources.lookups) wanted.emplace_back(&graph, lookup.node(), 0);
  }
  return wanted;
}

// The numbers of the rows that a lookup gives.
Output IdsOf(Graph& graph, const Operation& lookup) {
  const Node& node = graph.node(lookup.node());
  if (node.op == "Lookup") return {&graph, lookup.node(), 2};
  return {&graph, node.inputs[1].node, node.inputs[1].output};
}

Edge EdgeOf(const Output& output) {
  return {output.node(), output.index()};
}

// One gradient of all lookups: values for one row are summed before they leave.
VariableGradient SumRows(Graph& graph, const Sources& sources, const Output* gradients) {
  Node node;
  node.name = sources.variable.name() + "/sum_rows";
  node.op = "SumRows";
  for (std::size_t i = 0; i < sources.lookups.size(); ++i) {
    node.inputs.push_back(EdgeOf(IdsOf(graph, sources.lookups[i])));
    node.inputs.push_back(EdgeOf(gradients[i]));
  }
  const Node& variable = graph.node(sources.variable.handle().node());
  const auto& shape = std::get<std::vector<std::int64_t>>(variable.attrs.at("shape"));
  // That a scalar cannot be looked up is an error that the graph has already.
  const std::int64_t rows = shape.empty() ? 0 : shape.front();
  node.attrs = {{"sizes", std::vector<std::int64_t>{rows}},
                {"layout", "div"},
                {"combine", "sum"},
                {"variable", variable.name}};
  const Operation sum = graph.AddNode(std::move(node));
  return {sources.variable, Output(&graph, sum.node(), 1), Output(&graph, sum.node(), 0)};
}

// Rows that one Lookup gave have gradients summed already, as each of them was there once.
VariableGradient SparseGradientOf(Graph& graph, const Sources& sources, const Output* gradients) {
  const bool is_summed =
      sources.lookups.size() == 1 && graph.node(sources.lookups[0].node()).op == "Lookup";
  if (!is_summed) return SumRows(graph, sources, gradients);
  return {sources.variable, gradients[0], IdsOf(graph, sources.lookups[0])};
}

VariableGradient AddDense(Graph& graph, const VariableGradient& sparse, Output dense) {
  Node node;
  node.name = sparse.variable.name() + "/add_rows";
  node.op = "AddRows";
  node.inputs = {EdgeOf(dense), EdgeOf(sparse.indices), EdgeOf(sparse.gradient)};
  return {sparse.variable, Output(&graph, graph.AddNode(std::move(node)).node(), 0)};
}

}  // namespace

std::vector<VariableGradient> GradientsOf(Output loss) {
  Graph& graph = *loss.graph();
  const std::vector<Sources> all = FindSources(graph, loss);
  if (all.empty()) {
    graph.AddError(absl::InvalidArgumentError("Minimize: the graph has no trainable variable"));
    return {};
  }
  const std::vector<Output> wanted = WantedOf(graph, all);
  const std::vector<Output> found = graph.Gradients(loss, wanted);
  if (found.size() != wanted.size()) return {};
  std::vector<VariableGradient> gradients;
  const Output* next = found.data();
  for (const Sources& sources : all) {
    const Output dense = sources.is_read ? *next++ : Output();
    if (sources.lookups.empty()) {
      gradients.push_back({sources.variable, dense});
      continue;
    }
    const VariableGradient sparse = SparseGradientOf(graph, sources, next);
    next += sources.lookups.size();
    gradients.push_back(sources.is_read ? AddDense(graph, sparse, dense) : sparse);
  }
  return gradients;
}

}  // namespace weir::strategy
