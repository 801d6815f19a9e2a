#include "tensor/shape.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(ShapeTest, Prints) {
  EXPECT_EQ(ShapeToString(std::vector<std::int64_t>{-1, 784}), "[?, 784]");
  EXPECT_EQ(ShapeToString(std::vector<std::int64_t>{}), "[]");
  EXPECT_EQ(ShapeToString(std::nullopt), "[...]");
}

TEST(ShapeTest, UnknownPartsAllowAnything) {
  EXPECT_TRUE(ShapeAllows(std::nullopt, {1, 2, 3}));
  EXPECT_TRUE(ShapeAllows(std::vector<std::int64_t>{-1, 2}, {7, 2}));
  EXPECT_FALSE(ShapeAllows(std::vector<std::int64_t>{-1, 2}, {7, 3}));
  EXPECT_FALSE(ShapeAllows(std::vector<std::int64_t>{-1, 2}, {2}));
  EXPECT_TRUE(ShapeAllows(std::vector<std::int64_t>{}, {}));
}

}  // namespace
}  // namespace weir
