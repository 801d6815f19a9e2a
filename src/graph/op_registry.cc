#include "graph/op_registry.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/op_rules.h"

namespace weir::graph {
namespace {

constexpr auto kOps = std::to_array<OpInfo>({
    {.name = "Placeholder"},
    {.name = "Const"},
    {.name = "Variable", .stateful = true},
    {.name = "Read", .stateful = true, .handles = 1},
    {.name = "Assign", .stateful = true, .handles = 1},
    {.name = "AssignAdd", .stateful = true, .handles = 1},
    {.name = "IsInitialized", .stateful = true, .handles = 1},
    {.name = "Lookup", .stateful = true, .handles = 1, .placed_freely = true},
    {.name = "Gather", .stateful = true, .handles = 1},
    {.name = "ScatterAdd", .stateful = true, .handles = 1},
    {.name = "ScatterUpdate", .stateful = true, .handles = 1},
    {.name = "SumRows"},
    {.name = "AddRows"},
    {.name = "Identity", .differentiable = true},
    {.name = "Group"},
    {.name = "Aten", .differentiable = true},
    {.name = "Function", .differentiable = true},
    {.name = "Gradients"},
    {.name = "Apply", .stateful = true, .handles = 1},
    {.name = "Average", .stateful = true, .handles = 2},
    {.name = "Ticket", .stateful = true, .handles = 1},
    {.name = "ClipGradients"},
    {.name = "AddWeightDecay"},
    {.name = "CompleteStep", .stateful = true, .handles = 1},
    {.name = "ShardIds", .internal = true},
    {.name = "Split", .internal = true},
    {.name = "Feed", .internal = true},
    {.name = "Fetch", .internal = true},
    {.name = "Send", .internal = true},
    {.name = "Recv", .internal = true},
    {.name = "Backward", .internal = true},
    {.name = "SumGradients", .internal = true},
});

}  // namespace

const OpInfo* FindOp(std::string_view name) {
  const auto* found = std::ranges::find(kOps, name, &OpInfo::name);
  return found == kOps.end() ? nullptr : found;
}

bool FollowsVariable(const Node& node) {
  const OpInfo* op = FindOp(node.op);
  return op != nullptr && op->handles > 0 && !op->placed_freely;
}

std::string_view AttrTypeName(const AttrValue& value) {
  return AttrTypeNameOf(value.index());
}

template <typename T>
absl::StatusOr<T> GetAttr(const Node& node, const std::string& name) {
  const auto found = node.attrs.find(name);
  if (found == node.attrs.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("node '", node.name, "' (", node.op, ") has no attribute '", name, "'"));
  }
  if (const T* value = std::get_if<T>(&found->second)) return *value;
  return absl::InvalidArgumentError(
      absl::StrCat("node '", node.name, "' (", node.op, "): attribute '", name, "' is a ",
                   std::string(AttrTypeName(found->second)), ", not a ",
                   std::string(AttrTypeNameOf(AttrValue(T()).index()))));
}

template <typename T>
T AttrOr(const Node& node, const std::string& name, T fallback) {
  const auto found = node.attrs.find(name);
  if (found == node.attrs.end()) return fallback;
  const T* value = std::get_if<T>(&found->second);
  return value == nullptr ? std::move(fallback) : *value;
}

#define WEIR_INSTANTIATE_ATTR(...)                                                            \
  template absl::StatusOr<__VA_ARGS__> GetAttr<__VA_ARGS__>(const Node&, const std::string&); \
  template __VA_ARGS__ AttrOr<__VA_ARGS__>(const Node&, const std::string&, __VA_ARGS__)
WEIR_INSTANTIATE_ATTR(bool);
WEIR_INSTANTIATE_ATTR(std::int64_t);
WEIR_INSTANTIATE_ATTR(double);
WEIR_INSTANTIATE_ATTR(std::string);
WEIR_INSTANTIATE_ATTR(at::ScalarType);
WEIR_INSTANTIATE_ATTR(at::Tensor);
WEIR_INSTANTIATE_ATTR(std::vector<bool>);
WEIR_INSTANTIATE_ATTR(std::vector<std::int64_t>);
WEIR_INSTANTIATE_ATTR(std::vector<double>);
WEIR_INSTANTIATE_ATTR(std::vector<std::string>);
#undef WEIR_INSTANTIATE_ATTR

int NumDataInputs(const Node& node) {
  const auto first_control = std::ranges::find_if(node.inputs, &Edge::is_control);
  return static_cast<int>(first_control - node.inputs.begin());
}

}  // namespace weir::graph
