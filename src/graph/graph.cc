#include "weir/graph.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/graph_draft.h"
#include "graph/names.h"
#include "graph/op_registry.h"
#include "graph/op_rules.h"
#include "graph/shape_inference.h"

namespace weir {
namespace {

const OutputInfo kUnknown;

std::string InNode(const Node& node, const absl::Status& status) {
  const std::string context = absl::StrCat("node '", node.name, "'");
  const std::string message(status.message());
  return message.starts_with(context) ? message : absl::StrCat(context, ": ", message);
}

// How many outputs a node of that op has when its inputs tell nothing.
std::size_t LeastOutputs(const Node& node) {
  const graph::OpRule* rule = graph::FindRule(node.op);
  if (rule == nullptr || rule->outputs == graph::OpRule::kAny) {
    return std::max<std::size_t>(node.outputs.size(), 1);
  }
  return static_cast<std::size_t>(rule->outputs);
}

}  // namespace

const std::string& Operation::name() const {
  static const std::string none;
  return valid() ? std::as_const(*graph_).node(node_).name : none;
}

const OutputInfo& Output::info() const {
  if (!valid()) return kUnknown;
  const Node& node = std::as_const(*graph_).node(node_);
  const auto index = static_cast<std::size_t>(index_);
  return index < node.outputs.size() ? node.outputs[index] : kUnknown;
}

at::ScalarType Output::dtype() const {
  return info().dtype;
}

const Shape& Output::shape() const {
  return info().shape;
}

std::string Output::name() const {
  return index_ == 0 ? op().name() : absl::StrCat(op().name(), ":", index_);
}

Graph::Graph(std::uint64_t seed) {
  def_.seed = seed;
}

Graph::~Graph() = default;

void Graph::AddError(absl::Status error) {
  if (!error.ok()) errors_.push_back(std::move(error));
}

absl::Status Graph::status() const {
  if (errors_.empty()) return absl::OkStatus();
  if (errors_.size() == 1) {
    return absl::InvalidArgumentError(std::string(errors_.front().message()));
  }
  std::string text = absl::StrCat("the graph has ", errors_.size(), " errors:");
  for (const absl::Status& error : errors_) {
    absl::StrAppend(&text, "\n  ", std::string(error.message()));
  }
  return absl::InvalidArgumentError(text);
}

int Graph::FindNode(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? -1 : found->second;
}

Operation Graph::AddNode(Node node) {
  Draft draft = Begin(node.op, node.name);
  const std::vector<Edge> inputs = std::exchange(node.inputs, {});
  node.name = draft.node.name;
  draft.node = std::move(node);
  for (const Edge& edge : inputs) {
    if (!edge.is_control()) AddInput(draft, {this, edge.node, edge.output});
  }
  for (const Edge& edge : inputs) {
    if (edge.is_control()) AddControlInput(draft, {this, edge.node});
  }
  return {this, Finish(std::move(draft))};
}

Graph::Draft Graph::Begin(const std::string& op, const std::string& name) {
  Draft draft;
  draft.node.op = op;
  if (op == "Variable") {
    NameVariable(draft.node, name);
  } else {
    const std::string wanted = name.empty() ? op : name;
    draft.node.name = UniqueName(wanted);
    if (!graph::IsNodeName(wanted)) {
      Report(draft.node, absl::InvalidArgumentError(
                             "a name begins with a letter, digit or '.', and goes on with these or "
                             "'_', '-', '/', '\\'"));
    }
  }
  if (graph::FindOp(op) == nullptr) {
    Fail(draft, absl::InvalidArgumentError(absl::StrCat("unknown op '", op, "'")));
  }
  return draft;
}

void Graph::Report(const Node& node, const absl::Status& why) {
  AddError(absl::InvalidArgumentError(InNode(node, why)));
}

void Graph::Fail(Draft& draft, const absl::Status& why) {
  draft.ok = false;
  Report(draft.node, why);
}

// As the original: "name", "name_1", "name_2", ... whichever is free first.
std::string Graph::UniqueName(const std::string& wanted) {
  int& count = name_counts_[wanted];
  std::string name = wanted;
  while (names_.contains(name)) name = absl::StrCat(wanted, "_", ++count);
  return name;
}

bool Graph::HasNode(int index) const {
  return index >= 0 && static_cast<std::size_t>(index) < def_.nodes.size();
}

bool Graph::CheckOutput(Draft& draft, const Output& output) {
  if (!output.valid()) {
    Fail(draft, absl::InvalidArgumentError("an input is no tensor (a default-made Output)"));
    return false;
  }
  if (output.graph() != this) {
    Fail(draft, absl::InvalidArgumentError(
                    absl::StrCat("input '", output.name(), "' belongs to another graph")));
    return false;
  }
  if (!HasNode(output.node()) || output.index() < 0 ||
      static_cast<std::size_t>(output.index()) >= node(output.node()).outputs.size()) {
    Fail(draft,
         absl::InvalidArgumentError(absl::StrCat("an input is output ", output.index(), " of node ",
                                                 output.node(), ", which does not exist")));
    return false;
  }
  return true;
}

void Graph::AddInput(Draft& draft, const Output& output) {
  if (CheckOutput(draft, output)) draft.node.inputs.push_back({output.node(), output.index()});
}

void Graph::AddControlInput(Draft& draft, const Operation& before) {
  if (before.graph() != this || !HasNode(before.node())) {
    Fail(draft, absl::InvalidArgumentError("waits for an operation that is none of this graph"));
    return;
  }
  const Edge edge{before.node(), Edge::kControl};
  if (std::ranges::find(draft.node.inputs, edge) == draft.node.inputs.end()) {
    draft.node.inputs.push_back(edge);
  }
}

bool Graph::DependsOnBroken(const Node& node) const {
  return std::ranges::any_of(node.inputs, [&](const Edge& edge) {
    return !edge.is_control() && broken_.contains(edge.node);
  });
}

void Graph::InferOutputs(Draft& draft) {
  if (draft.ok && !DependsOnBroken(draft.node)) {
    auto outputs = graph::InferOutputs(def_, draft.node);
    if (outputs.ok()) {
      draft.node.outputs = *std::move(outputs);
      return;
    }
    Fail(draft, outputs.status());
  }
  draft.node.outputs.assign(LeastOutputs(draft.node), OutputInfo());
}

int Graph::Finish(Draft draft) {
  ApplyDeviceScopes(draft);
  InferOutputs(draft);
  ApplyControlScopes(draft);
  const int index = static_cast<int>(def_.nodes.size());
  if (!draft.ok || DependsOnBroken(draft.node)) broken_.insert(index);
  names_.emplace(draft.node.name, index);
  def_.nodes.push_back(std::move(draft.node));
  return index;
}

std::vector<Output> Graph::OutputsOf(int node_index) {
  std::vector<Output> outputs;
  for (std::size_t i = 0; i < node(node_index).outputs.size(); ++i) {
    outputs.emplace_back(this, node_index, static_cast<int>(i));
  }
  return outputs;
}

}  // namespace weir
