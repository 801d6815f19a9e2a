#include "graph/row_shards.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/op_registry.h"

namespace weir::graph {

absl::StatusOr<RowShards> RowShards::Make(std::vector<std::int64_t> sizes, RowLayout layout) {
  if (sizes.empty()) return absl::InvalidArgumentError("a variable has no slices");
  std::vector<std::int64_t> begins = {0};
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > std::numeric_limits<std::int64_t>::max() - begins.back())
      return absl::InvalidArgumentError(absl::StrCat("a slice cannot have ", size, " rows"));
    begins.push_back(begins.back() + size);
  }
  if (layout == RowLayout::kMod &&
      sizes != EvenSizes(begins.back(), static_cast<int>(sizes.size()))) {
    return absl::InvalidArgumentError("slices of layout mod are not dealt evenly");
  }
  return RowShards(std::move(begins), layout);
}

std::int64_t RowShards::PlaceOf(std::int64_t row) const {
  if (layout_ == RowLayout::kDiv) return row;
  return begins_[static_cast<std::size_t>(row % count())] + row / count();
}

std::int64_t RowShards::RowAt(std::int64_t place) const {
  if (layout_ == RowLayout::kDiv) return place;
  const int shard = ShardOfPlace(place);
  return (place - begin(shard)) * count() + shard;
}

int RowShards::ShardOfPlace(std::int64_t place) const {
  const auto after = std::ranges::upper_bound(begins_, place);
  return static_cast<int>(after - begins_.begin()) - 1;
}

std::vector<std::int64_t> EvenSizes(std::int64_t rows, int count) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(count), rows / count);
  std::fill_n(sizes.begin(), rows % count, rows / count + 1);
  return sizes;
}

std::string_view LayoutName(RowLayout layout) {
  return layout == RowLayout::kDiv ? "div" : "mod";
}

absl::StatusOr<RowLayout> ParseLayout(std::string_view name) {
  for (const RowLayout layout : {RowLayout::kDiv, RowLayout::kMod})
    if (LayoutName(layout) == name) return layout;
  return absl::InvalidArgumentError(absl::StrCat("no layout '", std::string(name), "'"));
}

void SetShardAttrs(const std::vector<std::int64_t>& sizes, RowLayout layout, Node& node) {
  node.attrs["sizes"] = sizes;
  node.attrs["layout"] = std::string(LayoutName(layout));
}

absl::StatusOr<RowShards> ShardsFromAttrs(const Node& node) {
  WEIR_ASSIGN_OR_RETURN(std::vector<std::int64_t> sizes,
                        GetAttr<std::vector<std::int64_t>>(node, "sizes"));
  WEIR_ASSIGN_OR_RETURN(const std::string name, GetAttr<std::string>(node, "layout"));
  WEIR_ASSIGN_OR_RETURN(const RowLayout layout, ParseLayout(name));
  auto shards = RowShards::Make(std::move(sizes), layout);
  if (!shards.ok()) return Annotate(shards.status(), absl::StrCat("node '", node.name, "'"));
  return shards;
}

}  // namespace weir::graph
