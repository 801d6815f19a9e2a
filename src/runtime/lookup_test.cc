// Tables and optimizers on parameter servers: reports from the field, listed in docs/cases.md.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cluster_testing.h"
#include "weir/device_setter.h"
#include "weir/embedding.h"
#include "weir/ops.h"
#include "weir/strategy.h"

namespace weir::runtime {
namespace {

using testing::HasSubstr;

at::Tensor Ids(const std::vector<std::int64_t>& ids) {
  return at::tensor(ids, at::kLong);
}

/// A table cut over two ps, looked up on the worker; its gradient is ones, its rate 1.
class LookupTest : public testing::Test {
 protected:
  LookupTest() { cluster_.StartAll(); }

  void Open(const Initializer& initial) {
    DeviceScope scope(graph_,
                      ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = "/job:worker/task:0"}));
    table_ = graph_.Variable("table", initial, {.partitioner = FixedSizePartitioner(2)});
    ids_ = graph_.Placeholder("ids", at::kLong, {-1});
    rows_ = EmbeddingLookup(table_, ids_);
    train_ = NewAsyncStrategy()->Minimize(Sgd{.learning_rate = 1}, ops::sum(rows_));
    auto session = cluster_.worker(0).OpenSession(graph_);
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = std::make_unique<Session>(*std::move(session));
  }

  absl::StatusOr<RunResult> Train(const at::Tensor& ids) {
    return session_->Run({{ids_, ids}}, {rows_}, {train_});
  }

  TestCluster cluster_{2, 1};
  Graph graph_;
  Variable table_;
  Output ids_, rows_;
  Operation train_;
  std::unique_ptr<Session> session_;
};

TEST_F(LookupTest, AStepMovesTheRowsThatItTouches) {  // C4-10
  Open(Zeros({1'000'000, 64}));
  std::vector<std::int64_t> ids(128);
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<std::int64_t>(i % 100) * 9'999;  // 100 different ones, on both ps
  ASSERT_TRUE(Train(Ids(ids)).ok());
  const Traffic& traffic = cluster_.worker(0).traffic();
  const std::uint64_t pulled = traffic.bytes_in, pushed = traffic.bytes_out;
  ASSERT_TRUE(Train(Ids(ids)).ok());
  constexpr std::uint64_t kRowBytes = 25'600, kIdBytes = 800, kLimit = 65'536;
  EXPECT_GE(traffic.bytes_in - pulled, kRowBytes);
  EXPECT_LT(traffic.bytes_in - pulled, kLimit);
  EXPECT_GE(traffic.bytes_out - pushed, kRowBytes + 2 * kIdBytes);
  EXPECT_LT(traffic.bytes_out - pushed, kLimit);
}

TEST_F(LookupTest, AnIdThatIsNoRowEndsItsStepAndChangesNothing) {  // C5-12
  const at::Tensor initial = at::arange(30, at::kFloat).reshape({10, 3});
  Open(FromTensor(initial));
  ASSERT_TRUE(session_->Run({{ids_, Ids({0, 9})}}, {rows_}).ok());
  for (const std::int64_t bad : {std::int64_t{10}, std::int64_t{-1}, std::int64_t{1} << 31,
                                 std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::min()}) {
    const auto trained = Train(Ids({4, bad, 7}));
    EXPECT_EQ(trained.status().code(), absl::StatusCode::kInvalidArgument) << trained.status();
    for (const std::string& part : {"id " + std::to_string(bad) + " at position 1",
                                    std::string("\"table\""), std::string("10 rows")})
      EXPECT_THAT(std::string(trained.status().message()), HasSubstr(part));
  }
  const auto read = session_->Run({}, {table_});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(at::equal((*read)[0], initial)) << (*read)[0];
  const auto next = Train(Ids({0, 9}));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->step, 1u);
}

TEST_F(LookupTest, AStepWithoutIdsIsAStep) {  // C5-14 (a), as far as it is asynchronous
  Open(Zeros({10, 1}));
  ASSERT_TRUE(Train(Ids({3})).ok());
  const auto empty = Train(Ids({}));
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(empty->step, 2u);
  const auto read = session_->Run({}, {table_});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ((*read)[0].sum().item<float>(), -1);
  EXPECT_EQ((*read)[0][3][0].item<float>(), -1);
}

/// Bags over a table whose row i is i, on one ps, trained with a gradient of ones and a rate of 1.
struct Bags {
  Bags() {
    cluster.StartAll();
    {
      DeviceScope scope(graph, "/job:ps/task:0");
      table = graph.Variable("table", FromTensor(at::arange(5, at::kDouble).reshape({5, 1})));
    }
    ids = graph.Placeholder("ids", at::kLong, {-1});
    offsets = graph.Placeholder("offsets", at::kLong, {-1});
    bags = EmbeddingBag(table, ids, {.combiner = Combiner::kMean, .offsets = offsets});
    train = NewAsyncStrategy()->Minimize(Sgd{.learning_rate = 1}, ops::sum(bags));
  }
  TestCluster cluster{1, 1};
  Graph graph;
  Variable table;
  Output ids, offsets, bags;
  Operation train;
};

TEST(BagsTest, AnEmptyBagIsZero) {  // C5-14 (b), (c)
  Bags model;
  auto session = model.cluster.worker(0).OpenSession(model.graph);
  ASSERT_TRUE(session.ok()) << session.status();
  const auto some = session->Run(
      {{model.ids, Ids({0, 1, 2, 3, 4})}, {model.offsets, Ids({0, 1, 1, 3, 3, 4})}}, {model.bags});
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_TRUE(at::allclose((*some)[0].reshape({-1}),
                           at::tensor({0.0, 0.0, 1.5, 0.0, 3.0, 4.0}, at::kDouble), 1e-12, 1e-12))
      << (*some)[0];
  const auto none = session->Run({{model.ids, Ids({})}, {model.offsets, Ids({0, 0, 0})}},
                                 {model.bags}, {model.train});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(at::equal((*none)[0], at::zeros({3, 1}, at::kDouble))) << (*none)[0];
  const auto read = session->Run({}, {model.table});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(at::equal((*read)[0].reshape({-1}), at::arange(5, at::kDouble))) << (*read)[0];
}

/// Row 5 gets gradients 3 and 3, a dense variable 8: what is subtracted from each by a step of
/// rate 1 under a bound of the global norm.
std::pair<double, double> AppliedUnderNorm(double bound) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Graph graph;
  Variable table, dense;
  {
    DeviceScope scope(graph, "/job:ps/task:0");
    table = graph.Variable("table", Zeros({6, 1}, at::kDouble));
    dense = graph.Variable("dense", Zeros({1}, at::kDouble));
  }
  DeviceScope scope(graph, "/job:worker/task:0");
  const Output rows = EmbeddingLookup(table, graph.Const(Ids({5, 5})));
  const Output loss = ops::sum(rows * graph.Const(at::full({}, 3.0, at::kDouble))) +
                      ops::sum(dense * graph.Const(at::full({}, 8.0, at::kDouble)));
  const Operation train =
      NewAsyncStrategy()->Minimize(Sgd{.learning_rate = 1}, loss, {.clip_global_norm = bound});
  auto session = cluster.worker(0).OpenSession(graph);
  EXPECT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(session->Run({}, {}, {train}).ok());
  const auto values = session->Run({}, {table, dense});
  EXPECT_TRUE(values.ok()) << values.status();
  return {-(*values)[0][5][0].item<double>(), -(*values)[1][0].item<double>()};
}

TEST(GlobalNormTest, DuplicateIdsAreMergedBeforeItIsTaken) {  // C5-08
  const auto [row, dense] = AppliedUnderNorm(5);  // of a norm of 10; unmerged it would be 9.06
  EXPECT_NEAR(row, 3, 1e-12);
  EXPECT_NEAR(dense, 4, 1e-12);
  EXPECT_EQ(AppliedUnderNorm(1e6), (std::pair{6.0, 8.0}));
}

/// v and the looked up row of a table after a step of rate 1 from zero, whose gradients are [1, 1]
/// and [x, 1].
std::vector<at::Tensor> AppliedWith(double x, const GradientOptions& options) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  Graph graph;
  Variable table, v;
  {
    DeviceScope scope(graph, "/job:ps/task:0");
    table = graph.Variable("table", Zeros({4, 2}, at::kDouble));
    v = graph.Variable("v", Zeros({2}, at::kDouble));
  }
  DeviceScope scope(graph, "/job:worker/task:0");
  const Output rows = EmbeddingLookup(table, graph.Const(Ids({3})));
  const Output loss = ops::sum(rows * graph.Const(at::tensor({x, 1.0}, at::kDouble))) + ops::sum(v);
  const Operation train = NewAsyncStrategy()->Minimize(Sgd{.learning_rate = 1}, loss, options);
  auto session = cluster.worker(0).OpenSession(graph);
  EXPECT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(session->Run({}, {}, {train}).ok());
  const auto values = session->Run({}, {v, table});
  EXPECT_TRUE(values.ok()) << values.status();
  EXPECT_TRUE(at::equal((*values)[1].slice(0, 0, 3), at::zeros({3, 2}, at::kDouble)));
  return {(*values)[0], (*values)[1][3]};
}

bool IsAllNan(const at::Tensor& value) {
  return at::isnan(value).all().item<bool>();
}

TEST(GlobalNormTest, ANormThatIsNotFiniteMakesEveryGradientNan) {
  for (const double x : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    const auto global = AppliedWith(x, {.clip_global_norm = 1});
    EXPECT_TRUE(IsAllNan(global[0]) && IsAllNan(global[1])) << global[0] << global[1];
    const auto own = AppliedWith(x, {.clip_norm = 10});
    EXPECT_TRUE(at::equal(own[0], at::full({2}, -1.0, at::kDouble))) << own[0];
    EXPECT_TRUE(IsAllNan(own[1])) << own[1];
  }
}

// T of the formula is the step's number, on whichever ps the variable is.
TEST(AdagradDaTest, ItsPenaltiesGrowWithTheSteps) {
  constexpr double kRate = 0.5, kFirst = 0.2, kL1 = 0.1, kL2 = 0.3;
  TestCluster cluster(2, 1);
  cluster.StartAll();
  Graph graph;
  std::vector<Output> variables;
  for (const char* ps : {"/job:ps/task:0", "/job:ps/task:1"}) {
    DeviceScope scope(graph, ps);
    variables.push_back(graph.Variable(variables.empty() ? "v" : "w", Ones({2}, at::kDouble)));
  }
  DeviceScope scope(graph, "/job:worker/task:0");
  const Operation train =
      NewAsyncStrategy()->Minimize(AdagradDa{.learning_rate = kRate,
                                             .initial_gradient_squared_accumulator_value = kFirst,
                                             .l1 = kL1,
                                             .l2 = kL2},
                                   ops::sum(variables[0] + variables[1]));
  auto session = cluster.worker(0).OpenSession(graph);
  ASSERT_TRUE(session.ok()) << session.status();
  for (int t = 1; t <= 4; ++t) {
    ASSERT_TRUE(session->Run({}, {}, {train}).ok());
    const auto values = session->Run({}, variables);
    ASSERT_TRUE(values.ok()) << values.status();
    const double expected = -kRate * (t - kL1 * t) / (kL2 * t * kRate + std::sqrt(kFirst + t));
    for (const std::size_t i : {0, 1})
      EXPECT_NEAR((*values)[i][1].item<double>(), expected, 1e-14) << t;
  }
}

TEST(SlotsTest, LiveWithTheirVariableWhereverTheModelIs) {  // C4-08
  for (const OptimizerSpec& spec :
       {OptimizerSpec(Momentum{}), OptimizerSpec(Adagrad{}), OptimizerSpec(AdagradDa{}),
        OptimizerSpec(Adadelta{}), OptimizerSpec(Adam{}), OptimizerSpec(LazyAdam{}),
        OptimizerSpec(AdamW{}), OptimizerSpec(Lamb{}), OptimizerSpec(Ftrl{}),
        OptimizerSpec(RmsProp{.centered = true}), OptimizerSpec(ProximalAdagrad{})}) {
    SCOPED_TRACE(spec.rule);
    TestCluster cluster(1, 1);
    cluster.StartAll();
    Graph graph;
    DeviceScope everything(graph, "/job:worker/task:0");
    Variable w;
    {
      DeviceScope scope(graph, "/job:ps/task:0");
      GlobalStep(graph);
      w = graph.Variable("w", Ones({3}));
    }
    const Operation train = NewAsyncStrategy()->Minimize(spec, ops::sum(w));
    auto session = cluster.worker(0).OpenSession(graph);
    ASSERT_TRUE(session.ok()) << session.status();
    const auto run = session->Run({}, {}, {train});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_TRUE(cluster.worker(0).variables().All().empty());
    const auto found = cluster.ps(0).variables().Find("ps", "w");
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_FALSE((*found)->slots().empty());
  }
}

}  // namespace
}  // namespace weir::runtime
