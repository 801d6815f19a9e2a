// Which slice of a variable holds which row.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "weir/graph.h"

namespace weir::graph {

/// The rows of one variable, dealt over slices: row r of layout kDiv is in the slice whose range
/// holds it, of kMod in slice r mod n, where it is row r / n.
///
/// The rows in the order of the slices, and within a slice in its own order, are numbered through:
/// a row's place. With kDiv a row's place is its number.
class RowShards {
 public:
  /// InvalidArgument when the sizes are not those of such slices (negative, none at all; with kMod
  /// others than an even deal), or there are more rows than fit an int64.
  static absl::StatusOr<RowShards> Make(std::vector<std::int64_t> sizes, RowLayout layout);

  std::int64_t rows() const { return begins_.back(); }
  int count() const { return static_cast<int>(begins_.size()) - 1; }
  /// The first place of slice `shard`; for count() the number of rows.
  std::int64_t begin(int shard) const { return begins_[static_cast<std::size_t>(shard)]; }
  /// REQUIRES: 0 <= row < rows().
  std::int64_t PlaceOf(std::int64_t row) const;
  std::int64_t RowAt(std::int64_t place) const;
  int ShardOfPlace(std::int64_t place) const;

 private:
  RowShards(std::vector<std::int64_t> begins, RowLayout layout)
      : begins_(std::move(begins)), layout_(layout) {}

  std::vector<std::int64_t> begins_;
  RowLayout layout_;
};

/// `count` sizes that make up `rows`; the first rows mod count slices have one more.
std::vector<std::int64_t> EvenSizes(std::int64_t rows, int count);

/// "div", "mod".
std::string_view LayoutName(RowLayout layout);
absl::StatusOr<RowLayout> ParseLayout(std::string_view name);

/// From and to the attributes "sizes" and "layout" of a node.
void SetShardAttrs(const std::vector<std::int64_t>& sizes, RowLayout layout, Node& node);
absl::StatusOr<RowShards> ShardsFromAttrs(const Node& node);

}  // namespace weir::graph
