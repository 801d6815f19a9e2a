#include "base/stable_hash.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

// Of the authors' tables: isthe.com/chongo/tech/comp/fnv, and SplitMix64's first outputs for seed
// 0.
TEST(StableHashTest, KnownValues) {
  EXPECT_EQ(Fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(Fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(Fnv1a("foobar"), 0x85944171f73967e8u);
  EXPECT_EQ(SplitMix64(0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(SplitMix64(0x9e3779b97f4a7c15), 0x6e789e6aa1b965f4u);
}

}  // namespace
}  // namespace weir
