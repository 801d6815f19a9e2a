#include "graph/initializer_attrs.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::graph {
namespace {

using ::testing::HasSubstr;

Node ToNode(const Initializer& initializer) {
  Node node{.name = "w", .op = "Variable"};
  InitializerToAttrs(initializer, node);
  return node;
}

TEST(InitializerAttrs, GoThereAndBack) {
  const std::vector<Initializer> initializers = {Zeros({}, at::kLong),
                                                 Constant({2}, 0.5),
                                                 Uniform({2, 3}, -1, 2),
                                                 Normal({4}, 0.1, 3),
                                                 TruncatedNormal({5, 6}, 0.2, 0, at::kDouble),
                                                 FromTensor(at::ones({2, 2}))};
  for (const Initializer& initializer : initializers) {
    const auto back = InitializerFromAttrs(ToNode(initializer));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->kind, initializer.kind);
    EXPECT_EQ(back->shape, initializer.shape);
    EXPECT_EQ(back->dtype, initializer.dtype);
    EXPECT_EQ(back->a, initializer.a);
    EXPECT_EQ(back->b, initializer.b);
    EXPECT_TRUE(back->value.is_same(initializer.value));
  }
}

TEST(InitializerAttrs, WhatComesFromElsewhereIsChecked) {
  const std::vector<std::pair<std::string, AttrValue>> wrong = {
      {"initializer", 17},
      {"initializer", -1},
      {"initializer", 0.5},
      {"initializer", 4},  // kValue, and there is no value
      {"dtype", at::ScalarType::Undefined},
      {"dtype", at::kQInt8},
      {"shape", std::vector<std::int64_t>{2, -1}},
      {"shape", std::vector<std::int64_t>(9, std::int64_t{1} << 60)},
      {"shape", 3}};
  for (const auto& [name, value] : wrong) {
    Node node = ToNode(Zeros({2}));
    node.attrs[name] = value;
    const auto back = InitializerFromAttrs(node);
    EXPECT_EQ(back.status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(back.status().message()), HasSubstr("node 'w'"));
  }
}

TEST(InitializerAttrs, AValueMustBeOfItsVariablesDtypeAndShape) {
  Node node = ToNode(FromTensor(at::ones({2, 2})));
  node.attrs["shape"] = std::vector<std::int64_t>{4};
  EXPECT_FALSE(InitializerFromAttrs(node).ok());
  node = ToNode(FromTensor(at::ones({2, 2})));
  node.attrs["dtype"] = at::kDouble;
  EXPECT_FALSE(InitializerFromAttrs(node).ok());
}

}  // namespace
}  // namespace weir::graph
