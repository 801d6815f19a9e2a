// Tables that are cut into slices and looked up by row, over a simulated cluster, against the same
// on one dense tensor.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/cluster_testing.h"
#include "weir/device_setter.h"
#include "weir/embedding.h"
#include "weir/ops.h"
#include "weir/strategy.h"

namespace weir::runtime {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kRows = 23;
constexpr std::int64_t kWidth = 3;

at::Tensor Values(at::ScalarType dtype = at::kFloat) {
  return at::sin(at::arange(kRows * kWidth, dtype)).reshape({kRows, kWidth});
}

at::Tensor Ids(const std::vector<std::int64_t>& ids) {
  return at::tensor(ids, at::kLong);
}

DeviceFunction Setter(int ps) {
  return ReplicaDeviceSetter({.ps_tasks = ps, .worker_device = "/job:worker/task:0"});
}

/// A graph whose variables are dealt over the ps tasks, with one table in slices.
struct Model {
  Model(int ps, const at::Tensor& values, int shards, RowLayout layout) {
    DeviceScope scope(graph, Setter(ps));
    ids = graph.Placeholder("ids", at::kLong, {-1});
    VariableOptions options{.layout = layout};
    if (shards > 0) options.partitioner = FixedSizePartitioner(shards);
    table = graph.Variable("table", FromTensor(values), options);
  }
  Graph graph;
  Output ids;
  Variable table;
};

Session Open(TestCluster& cluster, const Graph& graph) {
  auto session = cluster.worker(0).OpenSession(graph);
  EXPECT_TRUE(session.ok()) << session.status();
  return *std::move(session);
}

std::vector<at::Tensor> RunAll(Session& session, const std::vector<Feed>& feeds,
                               const std::vector<Output>& fetches,
                               const std::vector<Operation>& targets = {}) {
  auto result = session.Run(feeds, fetches, targets);
  EXPECT_TRUE(result.ok()) << result.status();
  std::vector<at::Tensor> values;
  for (std::size_t i = 0; result.ok() && i < fetches.size(); ++i) values.push_back((*result)[i]);
  return values;
}

using Cut = std::tuple<int, RowLayout>;

class SlicedTableTest : public ::testing::TestWithParam<Cut> {
 protected:
  static constexpr int kPs = 3;
  SlicedTableTest() : cluster_(kPs, 1) { cluster_.StartAll(); }

  static int shards() { return std::get<0>(GetParam()); }
  static RowLayout layout() { return std::get<1>(GetParam()); }

  TestCluster cluster_;
};

INSTANTIATE_TEST_SUITE_P(Cuts, SlicedTableTest,
                         ::testing::Combine(::testing::Range(1, 8),
                                            ::testing::Values(RowLayout::kDiv, RowLayout::kMod)));

TEST_P(SlicedTableTest, EveryIdFindsItsRow) {
  Model model(kPs, Values(), shards(), layout());
  const Output rows = EmbeddingLookup(model.table, model.ids);
  Session session = Open(cluster_, model.graph);
  for (std::int64_t id = 0; id < kRows; ++id) {
    const at::Tensor row = RunAll(session, {{model.ids, Ids({id})}}, {rows})[0];
    EXPECT_TRUE(at::equal(row, Values().slice(0, id, id + 1))) << id;
  }
  const at::Tensor many = at::remainder(at::arange(100, at::kLong) * 17, kRows);
  const at::Tensor got = RunAll(session, {{model.ids, many}}, {rows})[0];
  EXPECT_TRUE(at::equal(got, Values().index_select(0, many)));
  const at::Tensor none = RunAll(session, {{model.ids, Ids({})}}, {rows})[0];
  EXPECT_EQ(none.sizes(), (std::vector<std::int64_t>{0, kWidth}));
}

TEST_P(SlicedTableTest, IdsOfAnyShapeGiveRowsOfThatShape) {
  Model model(kPs, Values(), shards(), layout());
  const at::Tensor ids = at::remainder(at::arange(24, at::kLong) * 7, kRows).reshape({2, 3, 4});
  const Output rows = EmbeddingLookup(model.table, model.graph.Const(ids));
  EXPECT_EQ(rows.shape(), Shape({2, 3, 4, kWidth}));
  Session session = Open(cluster_, model.graph);
  EXPECT_TRUE(at::equal(RunAll(session, {}, {rows})[0], at::embedding(Values(), ids)));
}

TEST_P(SlicedTableTest, ReadAssignedAndAddedAsAWhole) {
  Model model(kPs, Values(), shards(), layout());
  const Output value = model.graph.Placeholder("value", at::kFloat, {kRows, kWidth});
  const Operation assign = model.graph.Assign(model.table, value);
  const Operation add = model.graph.AssignAdd(model.table, value, "add");
  Session session = Open(cluster_, model.graph);
  EXPECT_TRUE(at::equal(RunAll(session, {}, {model.table})[0], Values()));
  RunAll(session, {{value, Values() * 2}}, {}, {assign});
  EXPECT_TRUE(at::equal(RunAll(session, {}, {model.table})[0], Values() * 2));
  RunAll(session, {{value, Values()}}, {}, {add});
  EXPECT_TRUE(at::equal(RunAll(session, {}, {model.table})[0], Values() * 2 + Values()));
}

// What the graph cannot know, as it is fed: only so many rows as there are may be cut up.
TEST_P(SlicedTableTest, AValueOfAnotherSizeIsRefusedAndNotCutToFit) {
  Model model(kPs, Values(), shards(), layout());
  const Output value = model.graph.Placeholder("value", at::kFloat, {-1, kWidth});
  const Operation assign = model.graph.Assign(model.table, value);
  const Operation add = model.graph.AssignAdd(model.table, value, "add");
  Session session = Open(cluster_, model.graph);
  for (const std::int64_t rows : {kRows + 1, kRows - 1, std::int64_t{0}}) {
    for (const Operation& target : {assign, add}) {
      const auto result = session.Run({{value, at::ones({rows, kWidth})}}, {}, {target});
      EXPECT_TRUE(absl::IsInvalidArgument(result.status())) << result.status();
      EXPECT_THAT(std::string(result.status().message()),
                  ::testing::AllOf(HasSubstr("[" + std::to_string(rows) + ", 3]"),
                                   HasSubstr(std::to_string(kRows)), HasSubstr(target.name())));
    }
  }
  EXPECT_TRUE(at::equal(RunAll(session, {}, {model.table})[0], Values()));
}

TEST_P(SlicedTableTest, RowsAreAddedAndOverwrittenByTheirIds) {
  Model model(kPs, Values(at::kDouble), shards(), layout());
  const Output values = model.graph.Placeholder("values", at::kDouble, {-1, kWidth});
  const Operation add = model.graph.ScatterAdd(model.table, model.ids, values);
  const Operation update = model.graph.ScatterUpdate(model.table, model.ids, values);
  Session session = Open(cluster_, model.graph);
  const at::Tensor ids = Ids({22, 0, 7, 7, 13, 22, 1});
  const at::Tensor rows = at::arange(7 * kWidth, at::kDouble).reshape({7, kWidth});
  RunAll(session, {{model.ids, ids}, {values, rows}}, {}, {add});
  at::Tensor expected = Values(at::kDouble).index_add(0, ids, rows);
  const at::Tensor added = RunAll(session, {}, {model.table})[0];
  EXPECT_TRUE(at::allclose(added, expected, 1e-15, 1e-15));
  RunAll(session, {{model.ids, ids}, {values, rows}}, {}, {update});
  expected = added.clone();
  for (std::int64_t i = 0; i < 7; ++i) expected[ids[i].item<std::int64_t>()].copy_(rows[i]);
  EXPECT_TRUE(at::equal(RunAll(session, {}, {model.table})[0], expected));
}

TEST_P(SlicedTableTest, RowsOfAnyNumberTypeAreAdded) {
  for (const at::ScalarType dtype : {at::kInt, at::kLong, at::kHalf, at::kBFloat16}) {
    TestCluster cluster(kPs, 1);
    cluster.StartAll();
    const at::Tensor start = at::arange(kRows * kWidth, dtype).reshape({kRows, kWidth});
    Model model(kPs, start, shards(), layout());
    const Output values = model.graph.Placeholder("values", dtype, {-1, kWidth});
    const Operation add = model.graph.ScatterAdd(model.table, model.ids, values);
    Session session = Open(cluster, model.graph);
    const at::Tensor ids = Ids({22, 0, 7, 7, 13, 22, 1});
    const at::Tensor rows = at::arange(7 * kWidth, dtype).reshape({7, kWidth});
    RunAll(session, {{model.ids, ids}, {values, rows}}, {}, {add});
    EXPECT_TRUE(at::equal(RunAll(session, {}, {model.table})[0], start.index_add(0, ids, rows)))
        << dtype;
  }
}

TEST_P(SlicedTableTest, AnIdOutOfRangeIsNamedWithItsVariableAndTheRowsItHas) {
  Model model(kPs, Values(), shards(), layout());
  const Output rows = EmbeddingLookup(model.table, model.ids);
  Session session = Open(cluster_, model.graph);
  for (const std::int64_t id : {std::int64_t{-1}, kRows, std::int64_t{1} << 62}) {
    const auto result = session.Run({{model.ids, Ids({3, id})}}, {rows});
    EXPECT_TRUE(absl::IsInvalidArgument(result.status())) << result.status();
    EXPECT_THAT(std::string(result.status().message()),
                HasSubstr("id " + std::to_string(id) +
                          " at position 1 is out of range: variable \"table\" has 23 rows"));
  }
  EXPECT_TRUE(session.Run({{model.ids, Ids({3})}}, {rows}).ok());
}

// ---- Training.

/// Two looked up terms that overlap, and with `dense` one of the whole table.
template <class Lookup, class Tensor, class Sum, class Square>
Tensor Loss(const Lookup& lookup, const Tensor& table, bool dense, const Sum& sum,
            const Square& square) {
  const Tensor sparse = sum(square(lookup(0))) + sum(lookup(1));
  return dense ? sparse + sum(square(table)) : sparse;
}

const std::vector<std::vector<std::int64_t>>& Batch(int step) {
  static const std::vector<std::vector<std::vector<std::int64_t>>> batches = {
      {{0, 5, 5, 22}, {5, 11}}, {{22, 1, 2}, {0, 0, 0}}, {{8, 9, 10, 11, 12}, {12, 13}}};
  return batches[static_cast<std::size_t>(step) % batches.size()];
}

at::Tensor TrainedTable(TestCluster& cluster, int ps, int shards, RowLayout layout,
                        const OptimizerSpec& optimizer, bool dense) {
  constexpr int kSteps = 4;
  Model model(ps, Values(at::kDouble), shards, layout);
  Output loss;
  Output more_ids;
  {
    DeviceScope scope(model.graph, "/job:worker/task:0");
    more_ids = model.graph.Placeholder("more_ids", at::kLong, {-1});
    loss = Loss(
        [&](int term) { return EmbeddingLookup(model.table, term == 0 ? model.ids : more_ids); },
        model.table.read(), dense, [](Output x) { return ops::sum(x); },
        [](Output x) { return ops::square(x); });
  }
  const Operation train = NewAsyncStrategy()->Minimize(optimizer, loss);
  Session session = Open(cluster, model.graph);
  for (int step = 0; step < kSteps; ++step) {
    RunAll(session, {{model.ids, Ids(Batch(step)[0])}, {more_ids, Ids(Batch(step)[1])}}, {},
           {train});
  }
  return RunAll(session, {}, {model.table})[0];
}

TEST_P(SlicedTableTest, TrainedByRowsEqualsAWholeTable) {
  for (const OptimizerSpec& optimizer :
       {OptimizerSpec(Sgd{.learning_rate = 0.1}), OptimizerSpec(Adagrad{.learning_rate = 0.1}),
        OptimizerSpec(LazyAdam{.learning_rate = 0.1}), OptimizerSpec(Adam{.learning_rate = 0.1})}) {
    TestCluster whole(kPs, 1);
    whole.StartAll();
    TestCluster sliced(kPs, 1);
    sliced.StartAll();
    EXPECT_TRUE(at::equal(TrainedTable(whole, kPs, 0, RowLayout::kDiv, optimizer, false),
                          TrainedTable(sliced, kPs, shards(), layout(), optimizer, false)))
        << optimizer.rule;
  }
}

at::Tensor PlainlyTrainedTable(double rate, bool dense) {
  at::Tensor table = Values(at::kDouble);
  for (int step = 0; step < 4; ++step) {
    const at::Tensor leaf = table.detach().set_requires_grad(true);
    const at::Tensor loss = Loss(
        [&](int term) {
          return leaf.index_select(0, Ids(Batch(step)[static_cast<std::size_t>(term)]));
        },
        leaf, dense, [](const at::Tensor& x) { return at::sum(x); },
        [](const at::Tensor& x) { return at::square(x); });
    table = table - rate * torch::autograd::grad({loss}, {leaf})[0];
  }
  return table;
}

TEST_P(SlicedTableTest, GradientsOfLookupsAndOfTheWholeTableAdd) {
  for (const bool dense : {false, true}) {
    TestCluster cluster(kPs, 1);
    cluster.StartAll();
    EXPECT_TRUE(at::allclose(
        TrainedTable(cluster, kPs, shards(), layout(), Sgd{.learning_rate = 0.1}, dense),
        PlainlyTrainedTable(0.1, dense), 1e-13, 1e-13))
        << dense;
  }
}

/// What `options` make of the gradient of a table that is `w`.
at::Tensor Changed(const at::Tensor& gradient, const at::Tensor& w,
                   const GradientOptions& options) {
  at::Tensor changed = gradient + options.weight_decay * w;
  if (options.clip_value > 0) changed = at::clamp(changed, -options.clip_value, options.clip_value);
  for (const double bound : {options.clip_norm, options.clip_global_norm}) {
    if (bound > 0) changed = changed * (bound / std::max(changed.norm().item<double>(), bound));
  }
  return changed;
}

/// The table after a step of rate 1 on the sum of its elements, or of the rows `ids`, times
/// `factors`.
at::Tensor TableAfterAStep(TestCluster& cluster, Model& model, const at::Tensor& ids,
                           const at::Tensor& factors, const GradientOptions& options) {
  Output loss;
  {
    DeviceScope scope(model.graph, "/job:worker/task:0");
    const Output value =
        ids.defined() ? EmbeddingLookup(model.table, model.graph.Const(ids)) : model.table.read();
    loss = ops::sum(value * model.graph.Const(factors));
  }
  const Operation train = NewAsyncStrategy()->Minimize(Sgd{.learning_rate = 1}, loss, options);
  Session session = Open(cluster, model.graph);
  RunAll(session, {}, {}, {train});
  return RunAll(session, {}, {model.table})[0];
}

// Bounds are those of the whole gradient, however the table is cut, and of rows summed by their
// ids.
TEST_P(SlicedTableTest, GradientsAreClippedAsOfAWholeTable) {
  const at::Tensor w = Values(at::kDouble);
  const at::Tensor ids = Ids({22, 0, 7, 7, 13, 22, 1});
  const at::Tensor rows = 3 * at::cos(at::arange(7 * kWidth, at::kDouble)).reshape({7, kWidth});
  const at::Tensor all = 3 * at::cos(w);
  for (const bool sparse : {false, true}) {
    for (const GradientOptions& options :
         {GradientOptions{.weight_decay = 0.3},
          GradientOptions{.weight_decay = 0.3, .clip_norm = 2}, GradientOptions{.clip_value = 0.5},
          GradientOptions{.clip_norm = 2}, GradientOptions{.clip_global_norm = 2},
          GradientOptions{.clip_global_norm = 1e3}}) {
      if (sparse && options.weight_decay != 0) continue;
      TestCluster cluster(kPs, 1);
      cluster.StartAll();
      Model model(kPs, w, shards(), layout());
      const at::Tensor gradient = sparse ? at::zeros_like(w).index_add(0, ids, rows) : all;
      const at::Tensor got = TableAfterAStep(cluster, model, sparse ? ids : at::Tensor(),
                                             sparse ? rows : all, options);
      EXPECT_TRUE(at::allclose(got, w - Changed(gradient, w, options), 1e-13, 1e-13)) << sparse;
    }
  }
}

/// What a loss looks at a table by: a read of it all, and two lookups.
enum class Term { kRead, kFirst, kSecond };

/// The table after a step of rate 1 on the sum of `terms`, of which those of `flat` go through a
/// comparison, which has no gradient.
at::Tensor TableAfterTerms(TestCluster& cluster, Model& model, const at::Tensor& ids,
                           const std::vector<Term>& terms, const std::vector<Term>& flat) {
  Output loss = ops::sum(model.graph.Variable("other", Ones({1}, at::kDouble)));
  DeviceScope scope(model.graph, "/job:worker/task:0");
  for (const Term term : terms) {
    const Output value = term == Term::kRead ? model.table.read()
                                             : EmbeddingLookup(model.table, model.graph.Const(ids));
    const bool is_flat = std::ranges::find(flat, term) != flat.end();
    loss = loss + ops::sum(is_flat ? ops::to(ops::eq(value, value), at::kDouble) : value);
  }
  const Operation train = NewAsyncStrategy()->Minimize(Sgd{.learning_rate = 1}, loss);
  Session session = Open(cluster, model.graph);
  RunAll(session, {}, {}, {train});
  return RunAll(session, {}, {model.table})[0];
}

TEST_P(SlicedTableTest, LookupsAndReadsWithoutAGradientAddNothing) {
  using enum Term;
  const at::Tensor ids = Ids({22, 0, 7, 7});
  const at::Tensor w = Values(at::kDouble);
  const at::Tensor rows = at::zeros_like(w).index_add(0, ids, at::ones({4, kWidth}, at::kDouble));
  struct Case {
    std::vector<Term> terms, flat;
    at::Tensor gradient;
  };
  for (const Case& tested : {Case{{kFirst, kSecond}, {kFirst}, rows},
                             Case{{kFirst, kSecond}, {kFirst, kSecond}, at::zeros_like(w)},
                             Case{{kRead, kFirst}, {kRead}, rows},
                             Case{{kRead, kFirst, kSecond}, {kRead, kSecond}, rows},
                             Case{{kRead, kFirst}, {kFirst}, at::ones_like(w)},
                             Case{{kRead, kFirst, kSecond}, {kFirst, kSecond}, at::ones_like(w)},
                             Case{{kRead, kFirst}, {kRead, kFirst}, at::zeros_like(w)}}) {
    TestCluster cluster(kPs, 1);
    cluster.StartAll();
    Model model(kPs, w, shards(), layout());
    const at::Tensor got = TableAfterTerms(cluster, model, ids, tested.terms, tested.flat);
    EXPECT_TRUE(at::allclose(got, w - tested.gradient, 1e-14, 1e-14))
        << tested.terms.size() << " terms, of them flat " << tested.flat.size();
  }
}

// ---- Bags.

at::Tensor ReferenceBag(const at::Tensor& ids, const at::Tensor& weights, Combiner combiner) {
  at::Tensor sum = at::zeros({kWidth}, at::kDouble);
  double weight_sum = 0;
  double square_sum = 0;
  for (std::int64_t i = 0; i < ids.numel(); ++i) {
    const double weight = weights.defined() ? weights[i].item<double>() : 1;
    sum += weight * Values(at::kDouble)[ids[i].item<std::int64_t>()];
    weight_sum += weight;
    square_sum += weight * weight;
  }
  if (combiner == Combiner::kSum || ids.numel() == 0) return sum;
  return sum / (combiner == Combiner::kMean ? weight_sum : std::sqrt(square_sum));
}

class BagTest : public ::testing::TestWithParam<std::tuple<Combiner, bool>> {
 protected:
  BagTest() : cluster_(2, 1) { cluster_.StartAll(); }
  static Combiner combiner() { return std::get<0>(GetParam()); }
  static bool weighted() { return std::get<1>(GetParam()); }

  TestCluster cluster_;
};

INSTANTIATE_TEST_SUITE_P(Combiners, BagTest,
                         ::testing::Combine(::testing::Values(Combiner::kSum, Combiner::kMean,
                                                              Combiner::kSqrtN),
                                            ::testing::Bool()));

TEST_P(BagTest, FixedBagsAreCombined) {
  Model model(2, Values(at::kDouble), 3, RowLayout::kMod);
  const at::Tensor ids = Ids({4, 4, 9, 22, 0, 1, 2, 3, 17, 17, 17, 5}).reshape({3, 4});
  const at::Tensor weights =
      weighted() ? at::arange(12, at::kDouble).reshape({3, 4}) * 0.5 : at::Tensor();
  EmbeddingBagOptions options{.combiner = combiner()};
  if (weighted()) options.weights = model.graph.Const(weights);
  const Output bags = EmbeddingBag(model.table, model.graph.Const(ids), options);
  Session session = Open(cluster_, model.graph);
  const at::Tensor got = RunAll(session, {}, {bags})[0];
  ASSERT_EQ(got.sizes(), (std::vector<std::int64_t>{3, kWidth}));
  for (std::int64_t bag = 0; bag < 3; ++bag) {
    const at::Tensor expected =
        ReferenceBag(ids[bag], weighted() ? weights[bag] : at::Tensor(), combiner());
    EXPECT_TRUE(at::allclose(got[bag], expected, 1e-13, 1e-13)) << bag;
  }
}

TEST_P(BagTest, RaggedBagsAreCombinedAndEmptyOnesAreZero) {
  Model model(2, Values(at::kDouble), 3, RowLayout::kDiv);
  const std::vector<std::int64_t> ends = {0, 3, 3, 4, 9};  // the first and the third are empty
  const at::Tensor ids = Ids({4, 4, 9, 22, 0, 1, 2, 3, 17});
  const at::Tensor weights = weighted() ? 2 - at::arange(9, at::kDouble) * 0.25 : at::Tensor();
  EmbeddingBagOptions options{.combiner = combiner()};
  options.offsets = model.graph.Const(Ids({0, 0, 3, 3, 4}));
  if (weighted()) options.weights = model.graph.Const(weights);
  const Output bags = EmbeddingBag(model.table, model.graph.Const(ids), options);
  Session session = Open(cluster_, model.graph);
  const at::Tensor got = RunAll(session, {}, {bags})[0];
  ASSERT_EQ(got.size(0), 5);
  std::int64_t begin = 0;
  for (std::int64_t bag = 0; bag < 5; ++bag) {
    const std::int64_t end = ends[static_cast<std::size_t>(bag)];
    const at::Tensor own = weighted() ? weights.slice(0, begin, end) : at::Tensor();
    const at::Tensor expected = ReferenceBag(ids.slice(0, begin, end), own, combiner());
    EXPECT_TRUE(at::allclose(got[bag], expected, 1e-13, 1e-13)) << bag << got[bag] << expected;
    begin = end;
  }
}

// The graph does not know that there will be no ids.
TEST_P(BagTest, BagsOfNoColumnsAreZero) {
  Model model(2, Values(at::kDouble), 3, RowLayout::kDiv);
  const Output ids = model.graph.Placeholder("bags", at::kLong, {-1, -1});
  const Output weights = model.graph.Placeholder("weights", at::kDouble, {-1, -1});
  EmbeddingBagOptions options{.combiner = combiner()};
  if (weighted()) options.weights = weights;
  const Output bags = EmbeddingBag(model.table, ids, options);
  Session session = Open(cluster_, model.graph);
  std::vector<Feed> feeds = {{ids, at::empty({4, 0}, at::kLong)}};
  if (weighted()) feeds.push_back({weights, at::empty({4, 0}, at::kDouble)});
  const at::Tensor got = RunAll(session, feeds, {bags})[0];
  EXPECT_TRUE(at::equal(got, at::zeros({4, kWidth}, at::kDouble))) << got;
}

/// Two bags of two ids, the second weighted 2 and 1, both fixed and ragged. Returns the bags after
/// a step of rate 1 on the sum of all elements, and by how much it moved the weights.
std::pair<at::Tensor, at::Tensor> BagsOfWeights(TestCluster& cluster, Combiner combiner,
                                                bool ragged, double a, double b) {
  const std::vector<std::int64_t> shape =
      ragged ? std::vector<std::int64_t>{4} : std::vector<std::int64_t>{2, 2};
  Graph graph;
  DeviceScope scope(graph, Setter(2));
  const at::Tensor rows = at::tensor({1.0, 2.0, 5.0, 7.0}, at::kDouble).reshape({2, 2});
  const auto table = graph.Variable("table", FromTensor(rows), {.trainable = false});
  const at::Tensor first = at::tensor({a, b, 2.0, 1.0}, at::kDouble).reshape(shape);
  const auto weights = graph.Variable("weights", FromTensor(first));
  EmbeddingBagOptions options{.combiner = combiner, .weights = weights};
  if (ragged) options.offsets = graph.Const(Ids({0, 2}));
  const Output bags = EmbeddingBag(table, graph.Const(Ids({0, 1, 0, 1}).reshape(shape)), options);
  const Operation train = NewAsyncStrategy()->Minimize(Sgd{.learning_rate = 1}, ops::sum(bags));
  Session session = Open(cluster, graph);
  const at::Tensor got = RunAll(session, {}, {bags})[0];
  RunAll(session, {}, {}, {train});
  return {got, (first - RunAll(session, {}, {weights})[0]).reshape({2, 2})};
}

// Rows (1, 2) and (5, 7): with weights 2 and 1 they come to (7, 11). The mean's gradient with
// respect to a weight is sum(row - mean) / 3, of the other sum(row) / sqrt(5) - 18 w / sqrt(5)^3.
TEST(BagWeightsTest, WhatComesToNothingIsZeroAndHasNoGradient) {
  for (const bool ragged : {false, true}) {
    for (const double weight : {1.0, 0.0}) {
      TestCluster cluster(2, 1);
      cluster.StartAll();
      const auto [bags, gradient] =
          BagsOfWeights(cluster, Combiner::kMean, ragged, weight, -weight);
      EXPECT_TRUE(at::allclose(
          bags, at::tensor({0.0, 0.0, 7 / 3.0, 11 / 3.0}, at::kDouble).reshape({2, 2}), 1e-14, 0))
          << bags;
      EXPECT_TRUE(at::allclose(
          gradient,
          at::tensor({0.0, 0.0, (3 - 6) / 3.0, (12 - 6) / 3.0}, at::kDouble).reshape({2, 2}), 1e-14,
          0))
          << gradient;
    }
    TestCluster cluster(2, 1);
    cluster.StartAll();
    const double root = std::sqrt(5);
    const auto [bags, gradient] = BagsOfWeights(cluster, Combiner::kSqrtN, ragged, 0, 0);
    EXPECT_TRUE(at::allclose(
        bags, at::tensor({0.0, 0.0, 7 / root, 11 / root}, at::kDouble).reshape({2, 2}), 1e-14, 0))
        << bags;
    EXPECT_TRUE(at::allclose(
        gradient,
        at::tensor({0.0, 0.0, 3 / root - 18 * 2 / (5 * root), 12 / root - 18 / (5 * root)},
                   at::kDouble)
            .reshape({2, 2}),
        1e-13, 0))
        << gradient;
  }
}

std::string BagError(const std::vector<std::int64_t>& ids, const std::vector<std::int64_t>& offsets,
                     const std::vector<std::int64_t>& weights, at::ScalarType dtype = at::kDouble) {
  Graph graph;
  const auto table = graph.Variable("table", FromTensor(Values(at::kDouble)));
  EmbeddingBagOptions options;
  if (!offsets.empty()) options.offsets = graph.Placeholder("offsets", at::kLong, offsets);
  if (!weights.empty()) options.weights = graph.Placeholder("weights", dtype, weights);
  EmbeddingBag(table, graph.Placeholder("ids", at::kLong, ids), options);
  EXPECT_TRUE(graph.status().ok() || absl::IsInvalidArgument(graph.status())) << graph.status();
  return std::string(graph.status().message());
}

TEST(BagShapesTest, OtherShapesAreErrorsThatNameTheTableAndTheShape) {
  for (const auto& [error, shape] : {std::pair{BagError({5}, {}, {}), "int64 [5]"},
                                     {BagError({2, 3, 4}, {}, {}), "int64 [2, 3, 4]"},
                                     {BagError({5, 2}, {2}, {}), "int64 [5, 2]"},
                                     {BagError({5}, {2, 1}, {}), "int64 [2, 1]"},
                                     {BagError({5, 2}, {}, {2}), "float64 [2]"},
                                     {BagError({5, 2}, {}, {5, 1}), "float64 [5, 1]"},
                                     {BagError({5}, {2}, {4}), "float64 [4]"},
                                     {BagError({5}, {2}, {5}, at::kFloat), "float32 [5]"}}) {
    EXPECT_THAT(error, ::testing::AllOf(HasSubstr("'table'"), HasSubstr(shape)));
  }
  EXPECT_EQ(BagError({-1, 2}, {}, {5, -1}), "");
  EXPECT_EQ(BagError({-1}, {-1}, {-1}), "");
}

TEST(BagShapesTest, WeightsThatAreFedAreNotStretchedOverTheIds) {
  TestCluster cluster(2, 1);
  cluster.StartAll();
  Model model(2, Values(at::kDouble), 2, RowLayout::kDiv);
  const Output ids = model.graph.Placeholder("bags", at::kLong, {-1, -1});
  const Output weights = model.graph.Placeholder("weights", at::kDouble, {-1, -1});
  const Output bags = EmbeddingBag(model.table, ids, {.weights = weights});
  Session session = Open(cluster, model.graph);
  const auto result = session.Run(
      {{ids, Ids({0, 1, 2, 3}).reshape({2, 2})}, {weights, at::ones({2, 1}, at::kDouble)}}, {bags});
  EXPECT_TRUE(absl::IsInvalidArgument(result.status())) << result.status();
}

TEST_P(BagTest, ABagIsTrainedLikeItsFormula) {
  Model model(2, Values(at::kDouble), 3, RowLayout::kMod);
  const at::Tensor ids = Ids({4, 4, 9, 22, 0, 4}).reshape({2, 3});
  const at::Tensor weights =
      at::tensor({1.0, 2.0, 0.5, 1.0, 3.0, 1.5}, at::kDouble).reshape({2, 3});
  EmbeddingBagOptions options{.combiner = combiner()};
  if (weighted()) options.weights = model.graph.Const(weights);
  const Output bags = EmbeddingBag(model.table, model.graph.Const(ids), options);
  const Operation train =
      NewAsyncStrategy()->Minimize(Sgd{.learning_rate = 1}, ops::sum(ops::square(bags)));
  Session session = Open(cluster_, model.graph);
  RunAll(session, {}, {}, {train});

  const at::Tensor leaf = Values(at::kDouble).set_requires_grad(true);
  const at::Tensor own = (weighted() ? weights : at::ones({2, 3}, at::kDouble)).unsqueeze(-1);
  at::Tensor plain = (own * at::embedding(leaf, ids)).sum(1);
  if (combiner() == Combiner::kMean) plain = plain / own.sum(1);
  if (combiner() == Combiner::kSqrtN) plain = plain / own.square().sum(1).sqrt();
  const at::Tensor expected =
      leaf.detach() - torch::autograd::grad({plain.square().sum()}, {leaf})[0];
  EXPECT_TRUE(at::allclose(RunAll(session, {}, {model.table})[0], expected, 1e-13, 1e-13));
}

// ---- What travels.

struct Bytes {
  std::uint64_t in = 0, out = 0;
};

/// Of the worker's data plane, during a lookup and a training step by `ids`.
class WireTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kWide = 64;
  static constexpr std::uint64_t kRowBytes = kWide * sizeof(float);
  /// Length prefixes and numbers of a message take a few bytes more when what they count grows.
  static constexpr std::uint64_t kSlack = 32;

  WireTest() : cluster_(2, 1), model_(2, at::zeros({10'000, kWide}), 2, RowLayout::kMod) {
    cluster_.StartAll();
    rows_ = EmbeddingLookup(model_.table, model_.ids);
    train_ = NewAsyncStrategy()->Minimize(Adagrad{}, ops::sum(rows_));
    session_.emplace(Open(cluster_, model_.graph));
    Count({0, 1}, {}, {train_});  // the plan, the links, the initial values
  }

  Bytes Count(const std::vector<std::int64_t>& ids, const std::vector<Output>& fetches,
              const std::vector<Operation>& targets) {
    const Traffic& traffic = cluster_.worker(0).traffic();
    const Bytes before{traffic.bytes_in.load(), traffic.bytes_out.load()};
    RunAll(*session_, {{model_.ids, Ids(ids)}}, fetches, targets);
    return {traffic.bytes_in.load() - before.in, traffic.bytes_out.load() - before.out};
  }

  TestCluster cluster_;
  Model model_;
  Output rows_;
  Operation train_;
  std::optional<Session> session_;
};

std::vector<std::int64_t> Cycle(std::int64_t count, std::int64_t distinct) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(i % distinct * 3);
  return ids;
}

TEST_F(WireTest, ALookupMovesEachTouchedRowOnceAndNoOther) {
  Count(Cycle(8, 8), {rows_}, {});  // the plan of this set of fetches
  const Bytes few = Count(Cycle(8, 8), {rows_}, {});
  EXPECT_LE(few.in, 8 * kRowBytes + 1024);
  const Bytes repeated = Count(Cycle(4096, 8), {rows_}, {});
  EXPECT_EQ(repeated.in, few.in);
  EXPECT_EQ(repeated.out, few.out);
  const Bytes more = Count(Cycle(40, 40), {rows_}, {});
  EXPECT_GE(more.in - few.in, 32 * kRowBytes);
  EXPECT_LE(more.in - few.in, 32 * kRowBytes + kSlack);
  EXPECT_LE(more.out - few.out, 32 * sizeof(std::int64_t) + kSlack);
}

TEST_F(WireTest, AStepSendsOneSummedRowForEachIdItTouched) {
  Count(Cycle(8, 8), {}, {train_});
  const Bytes few = Count(Cycle(8, 8), {}, {train_});
  EXPECT_LE(few.out, 8 * (kRowBytes + 2 * sizeof(std::int64_t)) + 2048);
  const Bytes repeated = Count(Cycle(4096, 8), {}, {train_});
  EXPECT_EQ(repeated.in, few.in);
  EXPECT_EQ(repeated.out, few.out);
  const Bytes more = Count(Cycle(40, 40), {}, {train_});
  EXPECT_GE(more.out - few.out, 32 * kRowBytes);
  EXPECT_LE(more.out - few.out, 32 * (kRowBytes + 2 * sizeof(std::int64_t)) + 2 * kSlack);
  EXPECT_LE(more.in - few.in, 32 * kRowBytes + kSlack);
}

// ---- Cut along another axis.

TEST(ColumnsTest, ATableCutAlongItsColumnsIsReadAndTrainedButNotLookedUp) {
  TestCluster cluster(3, 1);
  cluster.StartAll();
  Graph graph;
  DeviceScope scope(graph, Setter(3));
  const auto table = graph.Variable("table", FromTensor(Values()),
                                    {.partitioner = FixedSizePartitioner(3, /*axis=*/1)});
  const Operation train =
      NewAsyncStrategy()->Minimize(Sgd{.learning_rate = 0.5}, ops::sum(ops::square(table)));
  {
    Session session = Open(cluster, graph);
    EXPECT_TRUE(at::equal(RunAll(session, {}, {table})[0], Values()));
    RunAll(session, {}, {}, {train});
    EXPECT_TRUE(at::equal(RunAll(session, {}, {table})[0], at::zeros({kRows, kWidth})));
  }
  EmbeddingLookup(table, graph.Const(Ids({1})));
  const auto session = cluster.worker(0).OpenSession(graph);
  EXPECT_TRUE(absl::IsInvalidArgument(session.status()));
  EXPECT_THAT(std::string(session.status().message()),
              HasSubstr("variable 'table' is cut along axis 1: its rows cannot be looked up"));
}

}  // namespace
}  // namespace weir::runtime
