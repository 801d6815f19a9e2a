#include "graph/row_shards.h"

#include <gtest/gtest.h>

#include <numeric>

namespace weir::graph {
namespace {

using Lists = std::vector<std::vector<std::int64_t>>;

// The rows of each slice in their order.
Lists Deal(std::int64_t rows, int count, RowLayout layout) {
  const absl::StatusOr<RowShards> shards = RowShards::Make(EvenSizes(rows, count), layout);
  EXPECT_TRUE(shards.ok()) << shards.status();
  Lists lists(static_cast<std::size_t>(count));
  for (std::int64_t place = 0; place < rows; ++place)
    lists[static_cast<std::size_t>(shards->ShardOfPlace(place))].push_back(shards->RowAt(place));
  return lists;
}

// The example of the original's embedding_lookup: 13 ids over 5 slices.
TEST(RowShards, DealsAsTheOriginal) {
  EXPECT_EQ(Deal(13, 5, RowLayout::kMod),
            (Lists{{0, 5, 10}, {1, 6, 11}, {2, 7, 12}, {3, 8}, {4, 9}}));
  EXPECT_EQ(Deal(13, 5, RowLayout::kDiv),
            (Lists{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9, 10}, {11, 12}}));
}

TEST(RowShards, APlaceIsOfOneRow) {
  for (const RowLayout layout : {RowLayout::kDiv, RowLayout::kMod}) {
    for (int count = 1; count <= 7; ++count) {
      for (std::int64_t rows = 0; rows <= 23; ++rows) {
        const auto shards = RowShards::Make(EvenSizes(rows, count), layout);
        ASSERT_TRUE(shards.ok()) << shards.status();
        EXPECT_EQ(shards->rows(), rows);
        for (std::int64_t row = 0; row < rows; ++row) {
          const std::int64_t place = shards->PlaceOf(row);
          EXPECT_EQ(shards->RowAt(place), row);
          const int shard = shards->ShardOfPlace(place);
          EXPECT_GE(place, shards->begin(shard));
          EXPECT_LT(place, shards->begin(shard + 1));
        }
      }
    }
  }
}

TEST(RowShards, RangesMayBeUneven) {
  const auto shards = RowShards::Make({2, 0, 3}, RowLayout::kDiv);
  ASSERT_TRUE(shards.ok()) << shards.status();
  EXPECT_EQ(shards->ShardOfPlace(1), 0);
  EXPECT_EQ(shards->ShardOfPlace(2), 2);
}

TEST(RowShards, RefusesWhatIsNoDeal) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(RowShards::Make({}, RowLayout::kDiv).ok());
  EXPECT_FALSE(RowShards::Make({3, -1}, RowLayout::kDiv).ok());
  EXPECT_FALSE(RowShards::Make({kMost, 1}, RowLayout::kDiv).ok());
  EXPECT_FALSE(RowShards::Make({2, 0, 3}, RowLayout::kMod).ok());
  EXPECT_FALSE(RowShards::Make({2, 3}, RowLayout::kMod).ok());
}

TEST(RowShards, GoesThroughAttributes) {
  Node node;
  SetShardAttrs({3, 3, 2}, RowLayout::kMod, node);
  const auto shards = ShardsFromAttrs(node);
  ASSERT_TRUE(shards.ok()) << shards.status();
  EXPECT_EQ(shards->count(), 3);
  EXPECT_EQ(shards->RowAt(0), 0);
  EXPECT_EQ(shards->RowAt(1), 3);
  node.attrs["layout"] = std::string("diagonal");
  EXPECT_EQ(ShardsFromAttrs(node).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weir::graph
