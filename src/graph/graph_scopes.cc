// Scopes of Graph: devices, control dependencies, colocation.
#include <algorithm>
#include <ranges>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cluster/device.h"
#include "graph/graph_draft.h"
#include "graph/op_registry.h"
#include "weir/graph.h"

namespace weir {
void Graph::PushDevice(DeviceFunction function) {
  device_scopes_.push_back(std::move(function));
}

void Graph::PopDevice() {
  device_scopes_.pop_back();
}

void Graph::PushControlDependencies(std::vector<Operation> operations) {
  control_scopes_.push_back(std::move(operations));
}

void Graph::PopControlDependencies() {
  control_scopes_.pop_back();
}

// `request` is from further out than what the node has, which is canonical or empty.
void Graph::MergeDevice(Node& node, const std::string& request) {
  const auto outer = DeviceSpec::Parse(request);
  if (!outer.ok()) {
    // A scope around a hundred nodes is one mistake.
    if (bad_devices_.insert(request).second) Report(node, outer.status());
    return;
  }
  const auto inner = DeviceSpec::Parse(node.device);
  if (inner.ok()) node.device = MergeScopes(*outer, *inner).ToString();
}

void Graph::ApplyDeviceScopes(Draft& draft) {
  const std::string own = std::exchange(draft.node.device, "");
  MergeDevice(draft.node, own);
  // Where a variable is used is not where it lives: its nodes go to it.
  if (draft.ignores_scopes || !draft.node.colocation.empty() || graph::FollowsVariable(draft.node))
    return;
  for (const DeviceFunction& scope : device_scopes_ | std::views::reverse) {
    if (!scope) return;
    MergeDevice(draft.node, scope(draft.node));
  }
}

void Graph::ApplyControlScopes(Draft& draft) {
  const std::string& op = draft.node.op;
  if (draft.ignores_scopes || op == "Placeholder" || op == "Variable") return;
  for (const std::vector<Operation>& operations : control_scopes_) {
    for (const Operation& operation : operations) AddControlInput(draft, operation);
  }
}

void Graph::AddControlEdge(Operation before, Operation operation) {
  if (!before.valid() || !operation.valid() || before.graph() != this ||
      operation.graph() != this) {
    AddError(absl::InvalidArgumentError(absl::StrCat("control edge from '", before.name(), "' to '",
                                                     operation.name(),
                                                     "': not two operations of this graph")));
    return;
  }
  if (before.node() == operation.node()) {
    AddError(absl::InvalidArgumentError(
        absl::StrCat("node '", operation.name(), "' cannot wait for itself")));
    return;
  }
  std::vector<Edge>& inputs = node(operation.node()).inputs;
  const Edge edge{before.node(), Edge::kControl};
  if (std::ranges::find(inputs, edge) == inputs.end()) inputs.push_back(edge);
}

void Graph::Colocate(Operation operation, Operation with) {
  if (!operation.valid() || !with.valid() || operation.graph() != this || with.graph() != this) {
    AddError(absl::InvalidArgumentError(absl::StrCat("colocation of '", operation.name(),
                                                     "' with '", with.name(),
                                                     "': not two operations of this graph")));
    return;
  }
  node(operation.node()).colocation = with.name();
  node(operation.node()).device.clear();
}

DeviceScope::DeviceScope(Graph& graph, const std::string& device) : graph_(graph) {
  if (device.empty()) {
    graph_.PushDevice(nullptr);
  } else {
    graph_.PushDevice([device](const Node&) { return device; });
  }
}

DeviceScope::DeviceScope(Graph& graph, DeviceFunction function) : graph_(graph) {
  graph_.PushDevice(std::move(function));
}

DeviceScope::~DeviceScope() {
  graph_.PopDevice();
}

ControlDependencies::ControlDependencies(Graph& graph, std::vector<Operation> operations)
    : graph_(graph) {
  graph_.PushControlDependencies(std::move(operations));
}

ControlDependencies::~ControlDependencies() {
  graph_.PopControlDependencies();
}

}  // namespace weir
