#include "weir/strategy.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "weir/embedding.h"
#include "weir/ops.h"

namespace weir {
namespace {

using testing::HasSubstr;

TEST(StrategyTest, OneTrainingStepAGraph) {
  Graph graph;
  const auto w = graph.Variable("w", Ones({2}));
  const auto strategy = NewAsyncStrategy();
  EXPECT_TRUE(strategy->Minimize(Sgd{}, ops::sum(w * w)).valid());
  ASSERT_TRUE(graph.status().ok()) << graph.status();
  EXPECT_FALSE(strategy->Minimize(Sgd{}, ops::sum(w)).valid());
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr("has a training step already"));
}

TEST(StrategyTest, AGraphWithoutVariablesCannotBeTrained) {
  Graph graph;
  const auto x = graph.Placeholder("x", at::kFloat, {2});
  EXPECT_FALSE(NewAsyncStrategy()->Minimize(Sgd{}, ops::sum(x)).valid());
  EXPECT_THAT(std::string(graph.status().message()), HasSubstr("no trainable variable"));
}

TEST(StrategyTest, WhatWasNeverAssignedGivesNoOperation) {
  EXPECT_FALSE(NewAsyncStrategy()->Minimize(Sgd{}, Output()).valid());
  EXPECT_FALSE(ApplyGradient(Sgd{}, Variable(), Output()).valid());
  Graph graph;
  const auto w = graph.Variable("w", Ones({2}));
  EXPECT_FALSE(ApplyGradient(Sgd{}, w, Output()).valid());
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(StrategyTest, AScalarThatIsLookedUpIsAnErrorOfTheGraph) {
  for (const int lookups : {1, 2}) {
    Graph graph;
    const auto scalar = graph.Variable("scalar", Ones({}));
    const auto ids = graph.Placeholder("ids", at::kLong, {-1});
    Output loss = ops::sum(EmbeddingLookup(scalar, ids));
    for (int i = 1; i < lookups; ++i) loss = loss + ops::sum(EmbeddingLookup(scalar, ids));
    NewAsyncStrategy()->Minimize(Sgd{}, loss);
    EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument) << graph.status();
    EXPECT_THAT(std::string(graph.status().message()),
                HasSubstr("'scalar' is a scalar and has no rows"));
  }
}

TEST(StrategyTest, WeightDecayNeedsADenseGradient) {
  Graph graph;
  const auto table = graph.Variable("table", Ones({4, 2}));
  const auto w = graph.Variable("w", Ones({2}));
  const auto ids = graph.Placeholder("ids", at::kLong, {-1});
  NewAsyncStrategy()->Minimize(Sgd{}, ops::sum(EmbeddingLookup(table, ids) * w),
                               {.weight_decay = 0.1});
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument) << graph.status();
  EXPECT_THAT(std::string(graph.status().message()),
              HasSubstr("variable 'table' has a sparse gradient"));
}

TEST(StrategyTest, ABoundThatCannotBeIsNamedWithItsValue) {
  Graph graph;
  const auto w = graph.Variable("w", Ones({2}));
  NewAsyncStrategy()->Minimize(Sgd{}, ops::sum(w), {.clip_norm = HUGE_VAL});
  EXPECT_THAT(std::string(graph.status().message()),
              HasSubstr("clip_norm = inf must be a finite number that is 0 (off) or more"));
}

TEST(StrategyTest, EachUpdateWaitsForTheTicketAndTheStepForEachUpdate) {
  Graph graph;
  const auto v = graph.Variable("v", Ones({2}));
  const auto w = graph.Variable("w", Ones({2}));
  const Operation train = NewAsyncStrategy({.stop_at_step = 7})->Minimize(Adam{}, ops::sum(v * w));
  ASSERT_TRUE(graph.status().ok()) << graph.status();
  const auto waits_for = [&](const std::string& node, const std::string& before) {
    const Edge edge{graph.FindNode(before), Edge::kControl};
    const std::vector<Edge>& inputs = graph.node(graph.FindNode(node)).inputs;
    return std::find(inputs.begin(), inputs.end(), edge) != inputs.end();
  };
  for (const char* apply : {"v/apply", "w/apply"}) {
    EXPECT_TRUE(waits_for(apply, "ticket")) << apply;
    EXPECT_TRUE(waits_for(train.name(), apply)) << apply;
  }
}

}  // namespace
}  // namespace weir
