#include "graph/shard_map.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/initializer_attrs.h"
#include "graph/op_registry.h"
#include "graph/row_shards.h"

namespace weir::graph {
namespace {

absl::StatusOr<SlicedVariable> SlicesFromAttrs(const Node& node) {
  SlicedVariable variable;
  // Parts of a first value are cut out of it.
  WEIR_RETURN_IF_ERROR(InitializerFromAttrs(node).status());
  WEIR_ASSIGN_OR_RETURN(const auto shape, GetAttr<std::vector<std::int64_t>>(node, "shape"));
  WEIR_ASSIGN_OR_RETURN(const auto axis, GetAttr<std::int64_t>(node, "axis"));
  WEIR_ASSIGN_OR_RETURN(const auto sizes, GetAttr<std::vector<std::int64_t>>(node, "sizes"));
  WEIR_ASSIGN_OR_RETURN(const auto layout, GetAttr<std::string>(node, "layout"));
  WEIR_ASSIGN_OR_RETURN(const auto devices,
                        GetAttr<std::vector<std::string>>(node, "slice_devices"));
  WEIR_ASSIGN_OR_RETURN(const RowShards shards, ShardsFromAttrs(node));
  if (axis < 0 || axis >= static_cast<std::int64_t>(shape.size()) ||
      shape[static_cast<std::size_t>(axis)] != shards.rows() || devices.size() != sizes.size() ||
      (layout != LayoutName(RowLayout::kDiv) && axis != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable '", node.name, "': its slices do not make it up"));
  }
  variable.axis = static_cast<int>(axis);
  WEIR_ASSIGN_OR_RETURN(variable.layout, ParseLayout(layout));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    variable.slices.push_back(
        {.name = SliceName(node.name, i), .size = sizes[i], .device = devices[i]});
  }
  return variable;
}

}  // namespace

std::vector<std::int64_t> SlicedVariable::sizes() const {
  std::vector<std::int64_t> sizes;
  for (const Slice& slice : slices) sizes.push_back(slice.size);
  return sizes;
}

std::string SliceName(const std::string& variable, std::size_t index) {
  return absl::StrCat(variable, "/part_", index);
}

absl::StatusOr<ShardMap> ShardMapOf(const GraphDef& graph) {
  ShardMap map;
  for (const Node& node : graph.nodes) {
    if (node.op != "Variable" || !node.attrs.contains("slice_devices")) continue;
    if (!node.colocation.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("variable '", node.name, "' is colocated with '", node.colocation,
                       "', but it is cut into slices, which have devices of their own: leave one "
                       "of the two"));
    }
    WEIR_ASSIGN_OR_RETURN(SlicedVariable variable, SlicesFromAttrs(node));
    map.variables.emplace(node.name, std::move(variable));
  }
  return map;
}

}  // namespace weir::graph
