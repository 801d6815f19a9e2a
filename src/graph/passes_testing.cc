#include "graph/passes_testing.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <ranges>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/gradient_paths.h"
#include "graph/node_util.h"
#include "graph/op_registry.h"

namespace weir::graph {
namespace {

OutputInfo Float(std::vector<std::int64_t> dims, bool differentiable) {
  return {.dtype = at::kFloat, .shape = std::move(dims), .differentiable = differentiable};
}

// FNV-1a: the same in every process, unlike absl's hash.
std::uint64_t HashText(const std::string& text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

std::uint64_t Factor(const Node& node, std::size_t input, std::size_t output) {
  if (node.op == "Identity") return 1;
  return HashText(absl::StrCat(node.name, "#", input, "#", output)) | 1U;
}

bool Passes(const Node& node, std::size_t output) {
  return IsRecordable(node) && (node.outputs[output].differentiable || node.op == "Identity");
}

using Key = std::pair<int, int>;

// Takes what has arrived at a node's outputs to its inputs.
void GoBack(const GraphDef& graph, int n, std::map<Key, std::uint64_t>& arrived) {
  const Node& node = NodeAt(graph, n);
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    const auto gradient = arrived.find({n, static_cast<int>(o)});
    if (gradient == arrived.end() || !Passes(node, o)) continue;
    const std::uint64_t value = gradient->second;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Edge& input = node.inputs[i];
      if (input.is_control()) continue;
      arrived[{input.node, input.output}] += value * Factor(node, i, o);
    }
  }
}

}  // namespace

int TestGraph::Add(const std::string& op, const std::string& name, std::vector<Edge> inputs,
                   std::vector<OutputInfo> outputs, const std::string& device) {
  Node node;
  node.op = op;
  node.name = name;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.device = device;
  def.nodes.push_back(std::move(node));
  return static_cast<int>(def.nodes.size()) - 1;
}

Edge TestGraph::Placeholder(const std::string& name, Dims dims, const std::string& device) {
  const int n = Add("Placeholder", name, {}, {Float(dims, false)}, device);
  at(n).attrs = {{"dtype", at::kFloat}, {"shape", dims}};
  return {.node = n, .output = 0};
}

Edge TestGraph::Const(const std::string& name, const std::string& device) {
  const int n = Add("Const", name, {}, {Float({2, 2}, false)}, device);
  at(n).attrs = {{"value", at::zeros({2, 2})}};
  return {.node = n, .output = 0};
}

Edge TestGraph::Variable(const std::string& name, Dims dims, const std::string& device) {
  const int n = Add("Variable", name, {}, {OutputInfo()}, device);
  at(n).attrs = {{"dtype", at::kFloat}, {"shape", dims}, {"initializer", std::int64_t{0}}};
  return {.node = n, .output = 0};
}

Edge TestGraph::Read(Edge handle, const std::string& device) {
  const Node variable = at(handle.node);
  const auto dims = AttrOr<std::vector<std::int64_t>>(variable, "shape", {});
  const int n = Add("Read", variable.name + "/read", {handle}, {Float(dims, false)},
                    device.empty() ? variable.device : device);
  return {.node = n, .output = 0};
}

Edge TestGraph::Aten(const std::string& name, std::vector<Edge> inputs, const std::string& device,
                     Dims dims, const std::string& op) {
  const int n = Add("Aten", name, std::move(inputs), {Float(std::move(dims), true)}, device);
  at(n).attrs = {{"operator", op}, {"overload", ""}};
  return {.node = n, .output = 0};
}

Edge TestGraph::Identity(const std::string& name, Edge input, const std::string& device) {
  return {.node = Add("Identity", name, {input}, {InfoOf(def, input)}, device), .output = 0};
}

Edge TestGraph::Function(const std::string& name, std::vector<Edge> inputs,
                         const std::string& device) {
  return {.node = Add("Function", name, std::move(inputs), {Float({2, 2}, true)}, device),
          .output = 0};
}

int TestGraph::Gradients(const std::string& name, Edge loss, const std::vector<Edge>& xs,
                         const std::string& device) {
  std::vector<Edge> inputs = {loss};
  std::vector<OutputInfo> outputs;
  for (const Edge& x : xs) {
    inputs.push_back(x);
    outputs.push_back(InfoOf(def, x));
    outputs.back().differentiable = false;
  }
  return Add("Gradients", name, std::move(inputs), std::move(outputs),
             device.empty() ? at(loss.node).device : device);
}

int TestGraph::Apply(Edge handle, Edge gradient) {
  const Node variable = at(handle.node);
  const int n = Add("Apply", variable.name + "/apply", {handle, gradient}, {}, variable.device);
  at(n).attrs = {{"rule", "GradientDescent"}};
  return n;
}

Edge TestGraph::Ticket(Edge global_step) {
  const int n = Add("Ticket", "ticket", {global_step}, {{.dtype = at::kLong, .shape = Dims()}},
                    at(global_step.node).device);
  at(n).attrs = {{"limit", std::int64_t{-1}}};
  return {.node = n, .output = 0};
}

int TestGraph::CompleteStep(Edge global_step) {
  return Add("CompleteStep", "complete", {global_step}, {}, at(global_step.node).device);
}

int TestGraph::Group(const std::string& name, const std::vector<int>& nodes,
                     const std::string& device) {
  const int n = Add("Group", name, {}, {}, device);
  for (const int before : nodes) After(n, before);
  return n;
}

void TestGraph::After(int node, int before) {
  at(node).inputs.push_back({.node = before, .output = Edge::kControl});
}

Node& TestGraph::node(const std::string& name) {
  return at(IndexNamed(def, name));
}
Node& TestGraph::at(int index) {
  return NodeAt(def, index);
}

const Node& NodeNamed(const GraphDef& graph, const std::string& name) {
  return NodeAt(graph, IndexNamed(graph, name));
}

int IndexNamed(const GraphDef& graph, const std::string& name) {
  const auto found = std::ranges::find(graph.nodes, name, &Node::name);
  WEIR_CHECK(found != graph.nodes.end());
  return static_cast<int>(found - graph.nodes.begin());
}

int CountOp(const GraphDef& graph, const std::string& op) {
  return static_cast<int>(std::ranges::count(graph.nodes, op, &Node::op));
}

std::vector<std::string> InputNames(const GraphDef& graph, const std::string& name) {
  std::vector<std::string> names;
  for (const Edge& input : NodeNamed(graph, name).inputs) names.push_back(TensorName(graph, input));
  return names;
}

std::vector<std::string> NamesOfOp(const GraphDef& graph, const std::string& op) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    if (node.op == op) names.push_back(node.name);
  }
  return names;
}

bool IsOrdered(const GraphDef& graph) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    bool control = false;
    for (const Edge& input : graph.nodes[n].inputs) {
      if (input.node < 0 || input.node >= static_cast<int>(n)) return false;
      if (control && !input.is_control()) return false;
      control = input.is_control();
    }
  }
  return true;
}

struct ExactRun::Partition {
  const GraphDef& graph;
  std::map<Key, Value> values;
  std::size_t next = 0;

  Value Input(const Edge& edge) { return values.at({edge.node, edge.output}); }
};

std::vector<std::string> ExactRun::Run(const PartitionedGraph& graph) {
  std::vector<Partition> partitions;
  for (const PartitionDef& partition : graph.partitions) {
    partitions.push_back({.graph = partition.graph, .values = {}});
  }
  bool progress = true;
  while (progress) {
    progress = false;
    for (Partition& partition : partitions) {
      while (partition.next < partition.graph.nodes.size() &&
             RunNode(partition, static_cast<int>(partition.next))) {
        order.push_back(partition.graph.nodes[partition.next].name);
        ++partition.next;
        progress = true;
      }
    }
  }
  std::vector<std::string> stuck;
  for (const Partition& partition : partitions) {
    for (std::size_t n = partition.next; n < partition.graph.nodes.size(); ++n) {
      stuck.push_back(partition.graph.nodes[n].name);
    }
  }
  return stuck;
}

// False for a Recv whose value has not been sent yet.
bool ExactRun::RunNode(Partition& partition, int n) {
  const Node& node = NodeAt(partition.graph, n);
  const auto data = static_cast<std::size_t>(NumDataInputs(node));
  const Key out(n, 0);
  if (node.op == "Send") {
    sent_[AttrOr<std::int64_t>(node, "edge", 0)] =
        data == 0 ? Value() : partition.Input(node.inputs[0]);
  } else if (node.op == "Recv") {
    const auto sent = sent_.find(AttrOr<std::int64_t>(node, "edge", 0));
    if (sent == sent_.end()) return false;
    partition.values[out] = sent->second;
  } else if (node.op == "Fetch") {
    fetches[AttrOr<std::int64_t>(node, "index", -1)] = partition.Input(node.inputs[0]);
  } else if (node.op == "Apply") {
    applied[node.name] = partition.Input(node.inputs[1]);
  } else if (node.op == "Backward") {
    RunBackward(partition, n);
  } else if (node.op == "SumGradients") {
    Value& sum = partition.values[out];
    for (const Edge& input : node.inputs) {
      if (input.is_control()) continue;
      if (const Value part = partition.Input(input)) sum = sum.value_or(0) + *part;
    }
  } else if (node.op == "Identity") {
    partition.values[out] = partition.Input(node.inputs[0]);
  } else if (IsAten(node, "aten::ones_like")) {
    partition.values[out] = 1;
  } else if (IsRecordable(node)) {
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      std::uint64_t value = 0;
      for (std::size_t i = 0; i < data; ++i) {
        value += Factor(node, i, o) * partition.Input(node.inputs[i]).value();
      }
      partition.values[{n, static_cast<int>(o)}] = value;
    }
  } else if (!node.outputs.empty()) {
    partition.values[out] = HashText(node.name);
  }
  return true;
}

void ExactRun::RunBackward(Partition& partition, int n) {
  const GraphDef& graph = partition.graph;
  const Node& node = NodeAt(graph, n);
  const auto num_ys = static_cast<std::size_t>(AttrOr<std::int64_t>(node, "num_ys", 0));
  const auto num_xs = static_cast<std::size_t>(AttrOr<std::int64_t>(node, "num_xs", 0));
  const std::int64_t segment = AttrOr<std::int64_t>(node, "segment", -1);
  std::map<Key, std::uint64_t> arrived;
  for (std::size_t i = 0; i < num_ys; ++i) {
    const Edge& y = node.inputs[i];
    WEIR_CHECK(AttrOr<std::int64_t>(NodeAt(graph, y.node), "segment", -2) == segment);
    if (const Value g = partition.Input(node.inputs[num_ys + i])) {
      arrived[{y.node, y.output}] += *g;
    }
  }
  for (int m = n - 1; m >= 0; --m) {
    const Node& other = NodeAt(graph, m);
    if (other.op == "Backward" || AttrOr<std::int64_t>(other, "segment", -2) != segment) continue;
    GoBack(graph, m, arrived);
  }
  for (std::size_t i = 0; i < num_xs; ++i) {
    const Edge& x = node.inputs[2 * num_ys + i];
    const auto gradient = arrived.find({x.node, x.output});
    partition.values[{n, static_cast<int>(i)}] =
        gradient == arrived.end() ? Value() : Value(gradient->second);
  }
}

ExactRun::Value ExactRun::Gradient(const GraphDef& graph, Edge loss, Edge x) {
  std::map<Key, std::uint64_t> arrived;
  arrived[{loss.node, loss.output}] = 1;
  const std::vector<int> order = TopologicalOrder(graph).value();
  for (const int n : std::views::reverse(order)) GoBack(graph, n, arrived);
  const auto gradient = arrived.find({x.node, x.output});
  return gradient == arrived.end() ? Value() : Value(gradient->second);
}

}  // namespace weir::graph
