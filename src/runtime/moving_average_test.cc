// Averages of variables that are trained over a simulated cluster.
#include "weir/moving_average.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cluster_testing.h"
#include "weir/device_setter.h"
#include "weir/ops.h"
#include "weir/strategy.h"

namespace weir::runtime {
namespace {

constexpr double kRate = 0.125;
constexpr int kSteps = 7;

/// w[10, 3], random, and b[3] on two ps tasks; each step takes kRate times x from every element of
/// w, and kRate from b.
struct Model {
  explicit Model(std::optional<RowLayout> cut, const MovingAverage& options) : graph(3) {
    const DeviceScope scope(graph, ReplicaDeviceSetter({.ps_tasks = 2}));
    VariableOptions variable;
    if (cut) variable = {.partitioner = FixedSizePartitioner(3), .layout = *cut};
    w = graph.Variable("w", Normal({10, 3}, 1, 0, at::kDouble), variable);
    b = graph.Variable("b", Ones({3}, at::kDouble));
    x = graph.Placeholder("x", at::kDouble, {10, 3});
    const Operation step =
        NewAsyncStrategy()->Minimize(Sgd{.learning_rate = kRate}, ops::sum(w * x) + ops::sum(b));
    averages.emplace(graph, graph.trainable_variables(), options);
    train = averages->UpdateAfter(step);
  }
  Graph graph;
  Variable w, b;
  Output x;
  std::optional<MovingAverages> averages;
  Operation train;
};

class MovingAveragesTest : public ::testing::TestWithParam<std::optional<RowLayout>> {
 protected:
  MovingAveragesTest() : cluster_(2, 1) { cluster_.StartAll(); }
  TestCluster cluster_;
};

INSTANTIATE_TEST_SUITE_P(Cuts, MovingAveragesTest,
                         ::testing::Values(std::nullopt, RowLayout::kDiv, RowLayout::kMod));

TEST_P(MovingAveragesTest, FollowTheValuesAfterEachStep) {
  for (const bool warm_up : {false, true}) {
    TestCluster cluster(2, 1);
    cluster.StartAll();
    Model model(GetParam(), {.decay = 0.25, .warm_up = warm_up});
    auto session = cluster.worker(0).OpenSession(model.graph);
    ASSERT_TRUE(session.ok()) << session.status();
    const Output w_average = model.averages->of(model.w);
    const Output b_average = model.averages->of(model.b);
    auto first = session->Run({}, {model.w, w_average, b_average}, {});
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_TRUE(at::equal((*first)[0], (*first)[1])) << "starts with the variable's first value";
    at::Tensor w = (*first)[0], w_expected = w, b_expected = (*first)[2];
    for (int n = 0; n < kSteps; ++n) {
      const at::Tensor x = at::cos(at::arange(30, at::kDouble) + n).reshape({10, 3});
      const auto stepped = session->Run({{model.x, x}}, {}, {model.train});
      ASSERT_TRUE(stepped.ok()) << stepped.status();
      const double decay = warm_up ? std::min(0.25, (1.0 + n) / (10.0 + n)) : 0.25;
      w = w - x * kRate;
      w_expected = w_expected * decay + w * (1 - decay);
      b_expected = b_expected * decay + (1 - (n + 1) * kRate) * (1 - decay);
      auto now = session->Run({}, {w_average, b_average, model.w}, {});
      ASSERT_TRUE(now.ok()) << now.status();
      EXPECT_TRUE(at::allclose((*now)[2], w, 1e-14, 1e-14)) << n;
      EXPECT_TRUE(at::allclose((*now)[0], w_expected, 1e-13, 1e-13)) << n;
      EXPECT_TRUE(at::allclose((*now)[1], b_expected, 1e-13, 1e-13)) << n;
    }
  }
}

TEST_P(MovingAveragesTest, LieBesideTheirVariables) {
  Model model(GetParam(), {});
  auto session = cluster_.worker(0).OpenSession(model.graph);
  ASSERT_TRUE(session.ok()) << session.status();
  const std::string suffix = "/ExponentialMovingAverage";
  int pairs = 0;
  for (int task = 0; task < 2; ++task) {
    std::vector<std::string> names;
    for (const auto& variable : cluster_.ps(task).variables().All())
      names.push_back(variable->def().name);
    for (const std::string& name : names) {
      const std::size_t at = name.find(suffix);
      if (at == std::string::npos) continue;
      std::string of = name;
      of.erase(at, suffix.size());
      EXPECT_THAT(names, ::testing::Contains(of)) << "on ps:" << task;
      ++pairs;
    }
  }
  EXPECT_EQ(pairs, GetParam() ? 4 : 2);
}

TEST(MovingAverages, OfWhatIsNotAveragedThereIsNone) {
  Graph graph;
  const Variable w = graph.Variable("w", Ones({2}));
  const Variable other = graph.Variable("other", Ones({2}));
  const MovingAverages averages(graph, {w});
  EXPECT_TRUE(averages.of(w).handle().valid());
  EXPECT_FALSE(averages.of(other).handle().valid());
  EXPECT_THAT(std::string(graph.status().message()),
              ::testing::HasSubstr("no average is kept of variable 'other'"));
}

TEST(MovingAverages, WaitForTheirOwnVariablesUpdateOnly) {
  Graph graph;
  const Variable v = graph.Variable("v", Ones({2}));
  const Variable w = graph.Variable("w", Ones({2}));
  const Operation step = NewAsyncStrategy()->Minimize(Sgd{}, ops::sum(v * w));
  MovingAverages averages(graph, {w});
  averages.UpdateAfter(step);
  const Node& update = graph.node(graph.FindNode("w/ExponentialMovingAverage/update"));
  EXPECT_EQ(update.inputs.back(), (Edge{graph.FindNode("w/apply"), Edge::kControl}));
}

TEST(MovingAverages, OfIntegersAreRefusedWhenTheSessionOpens) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Graph graph;
  const Variable n = graph.Variable("n", Zeros({2}, at::kLong));
  MovingAverages averages(graph, {n});
  const Operation update =
      averages.UpdateAfter(graph.AssignAdd(n, graph.Const(at::ones({2}, at::kLong))));
  auto session = cluster.worker(0).OpenSession(graph);
  const absl::Status status =
      session.ok() ? session->Run({}, {}, {update}).status() : session.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("neither float32 nor float64"));
}

}  // namespace
}  // namespace weir::runtime
