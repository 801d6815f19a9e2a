#include "weir/ops.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph/aten_schema.h"
#include "graph/graph_testing.h"

namespace weir {
namespace {

using graph::Evaluate;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Outputs = std::vector<Output>;
using Shapes = std::vector<std::vector<std::int64_t>>;

// A wrapper with inputs that suit it. Integer inputs are labels or indices below 3.
struct Case {
  std::string name;
  Shapes shapes;
  std::vector<at::ScalarType> dtypes;
  std::function<Outputs(const Outputs&)> build;
};

Case Of(std::string name, Shapes shapes, std::function<Outputs(const Outputs&)> build) {
  std::vector<at::ScalarType> dtypes(shapes.size(), at::kFloat);
  return {std::move(name), std::move(shapes), std::move(dtypes), std::move(build)};
}

Case Labelled(std::string name, Shapes shapes, std::function<Outputs(const Outputs&)> build) {
  Case made = Of(std::move(name), std::move(shapes), std::move(build));
  made.dtypes.back() = at::kLong;
  return made;
}

Case Unary(std::string name, Output (*op)(Output)) {
  return Of(std::move(name), {{4, 6}}, [op](const Outputs& in) { return Outputs{op(in[0])}; });
}

Case Binary(std::string name, Output (*op)(Output, Output)) {
  return Of(std::move(name), {{4, 6}, {6}},
            [op](const Outputs& in) { return Outputs{op(in[0], in[1])}; });
}

std::vector<Case> Elementwise() {
  return {
      Binary("add", ops::add),
      Binary("sub", ops::sub),
      Binary("mul", ops::mul),
      Binary("div", ops::div),
      Binary("operators", [](Output a, Output b) { return -((a + b) * (a - b) / a); }),
      Binary("eq", ops::eq),
      Unary("neg", ops::neg),
      Unary("exp", ops::exp),
      Unary("log", ops::log),
      Unary("sqrt", ops::sqrt),
      Unary("square", ops::square),
      Unary("relu", ops::relu),
      Unary("sigmoid", ops::sigmoid),
      Unary("tanh", ops::tanh),
      Unary("gelu", ops::gelu),
      Unary("sum", [](Output a) { return ops::sum(a); }),
      Unary("mean", [](Output a) { return ops::mean(a); }),
      Unary("mul_scalar", [](Output a) { return ops::mul_scalar(a, 2.5); }),
      Unary("add_scalar", [](Output a) { return ops::add_scalar(a, 2.5); }),
      Unary("pow", [](Output a) { return ops::pow(a, 3); }),
      Unary("to", [](Output a) { return ops::to(a, at::kDouble); }),
      Unary("dropout", [](Output a) { return ops::dropout(a, 0.25); }),
      Unary("softmax", [](Output a) { return ops::softmax(a, 1); }),
      Unary("log_softmax", [](Output a) { return ops::log_softmax(a, -1); }),
  };
}

std::vector<Case> Shaping() {
  return {
      Unary("reshape", [](Output a) { return ops::reshape(a, {-1, 2, 3}); }),
      Unary("flatten", [](Output a) { return ops::flatten(a, 0); }),
      Unary("transpose", [](Output a) { return ops::transpose(a, 0, 1); }),
      Unary("permute", [](Output a) { return ops::permute(a, {1, 0}); }),
      Unary("slice", [](Output a) { return ops::slice(a, 1, 1, 5, 2); }),
      Unary("sum_dims", [](Output a) { return ops::sum(a, {0}); }),
      Unary("mean_dims", [](Output a) { return ops::mean(a, {0, 1}, true); }),
      Unary("argmax", [](Output a) { return ops::argmax(a, 1); }),
      Of("cat", {{4, 6}, {4, 3}}, [](const Outputs& in) { return Outputs{ops::cat(in, 1)}; }),
      Of("stack", {{4, 6}, {4, 6}}, [](const Outputs& in) { return Outputs{ops::stack(in, 1)}; }),
      Of("split", {{4, 6}}, [](const Outputs& in) { return ops::split(in[0], 4, 1); }),
  };
}

std::vector<Case> Layers() {
  return {
      Of("matmul", {{4, 6}, {6, 5}},
         [](const Outputs& in) { return Outputs{ops::matmul(in[0], in[1])}; }),
      Of("linear", {{4, 6}, {5, 6}},
         [](const Outputs& in) { return Outputs{ops::linear(in[0], in[1])}; }),
      Of("linear_bias", {{4, 2, 6}, {5, 6}, {5}},
         [](const Outputs& in) { return Outputs{ops::linear(in[0], in[1], in[2])}; }),
      Of("conv2d", {{4, 2, 9, 8}, {6, 2, 3, 3}},
         [](const Outputs& in) { return Outputs{ops::conv2d(in[0], in[1])}; }),
      Of("conv2d_all", {{4, 2, 9, 8}, {6, 1, 3, 2}, {6}},
         [](const Outputs& in) {
           return Outputs{ops::conv2d(in[0], in[1], in[2], {2, 1}, {1, 0}, {1, 2}, 2)};
         }),
      Of("max_pool2d", {{4, 2, 9, 8}},
         [](const Outputs& in) { return Outputs{ops::max_pool2d(in[0], {2, 3}, {1, 2}, {1, 1})}; }),
      Of("avg_pool2d", {{4, 2, 9, 8}},
         [](const Outputs& in) { return Outputs{ops::avg_pool2d(in[0], {2, 2})}; }),
      Of("layer_norm", {{4, 6}, {6}, {6}},
         [](const Outputs& in) { return Outputs{ops::layer_norm(in[0], {6}, in[1], in[2])}; }),
      Labelled("embedding", {{5, 3}, {4, 2}},
               [](const Outputs& in) { return Outputs{ops::embedding(in[0], in[1])}; }),
  };
}

std::vector<Case> Losses() {
  return {
      Labelled("cross_entropy_loss", {{4, 3}, {4}},
               [](const Outputs& in) { return Outputs{ops::cross_entropy_loss(in[0], in[1])}; }),
      Labelled("accuracy", {{4, 3}, {4}},
               [](const Outputs& in) { return Outputs{ops::accuracy(in[0], in[1])}; }),
      Of("mse_loss", {{4, 3}, {4, 3}},
         [](const Outputs& in) { return Outputs{ops::mse_loss(in[0], in[1])}; }),
      Of("binary_cross_entropy_with_logits", {{4, 3}, {4, 3}},
         [](const Outputs& in) {
           return Outputs{ops::binary_cross_entropy_with_logits(in[0], in[1])};
         }),
  };
}

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (auto* group : {Elementwise, Shaping, Layers, Losses}) {
    for (Case& made : group()) all.push_back(std::move(made));
  }
  return all;
}

at::Tensor RandomTensor(const std::vector<std::int64_t>& shape, at::ScalarType dtype) {
  if (dtype == at::kLong) return at::randint(3, shape, at::kLong);
  return at::rand(shape, dtype) + 0.5;
}

// Builds the case with the given placeholder shapes, and evaluates it with the case's own.
struct Built {
  explicit Built(const Case& made, const Shapes& declared) {
    Outputs inputs;
    for (std::size_t i = 0; i < declared.size(); ++i) {
      const std::string name = "x" + std::to_string(i);
      inputs.push_back(graph.Placeholder(name, made.dtypes[i], declared[i]));
      feeds[name] = RandomTensor(made.shapes[i], made.dtypes[i]);
    }
    outputs = made.build(inputs);
  }

  Graph graph;
  std::map<std::string, at::Tensor> feeds;
  Outputs outputs;
};

// The case's shapes, with -1 where a bit of `mask` is set.
Shapes Mask(const Case& made, std::size_t mask) {
  Shapes declared = made.shapes;
  for (auto& shape : declared) {
    for (std::int64_t& dim : shape) {
      if ((mask & 1) != 0) dim = -1;
      mask >>= 1;
    }
  }
  // How many parts it is cut in must be known.
  if (made.name == "split") declared[0][1] = made.shapes[0][1];
  return declared;
}

void ExpectDescribed(const Node& node, const std::vector<at::Tensor>& values) {
  ASSERT_EQ(node.outputs.size(), values.size()) << node.name;
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(graph::Describes(node.outputs[i], values[i]))
        << node.name << " is said to be " << graph::ToText(node.outputs[i]) << ", is "
        << values[i].sizes();
    EXPECT_EQ(node.outputs[i].differentiable, values[i].requires_grad()) << node.name;
  }
}

class Wrappers : public ::testing::TestWithParam<Case> {};

TEST_P(Wrappers, InferredIsActual) {
  Built built(GetParam(), GetParam().shapes);
  ASSERT_TRUE(built.graph.status().ok()) << built.graph.status();
  const graph::Values values = Evaluate(built.graph, built.feeds);
  for (std::size_t n = 0; n < values.size(); ++n) {
    const Node& node = built.graph.node(static_cast<int>(n));
    ASSERT_EQ(node.outputs.size(), values[n].size()) << node.name;
    for (std::size_t i = 0; i < values[n].size(); ++i) {
      const at::Tensor& value = values[n][i];
      const OutputInfo actual{value.scalar_type(), value.sizes().vec(), value.requires_grad()};
      EXPECT_EQ(graph::ToText(node.outputs[i]), graph::ToText(actual)) << node.name;
    }
  }
}

// Whatever is not known when the graph is built: nothing false is claimed, nothing that works is
// refused, and the dtype is always known. All masks of dimensions where there are few, else some.
TEST_P(Wrappers, WithUnknownDimensionsNothingFalseIsClaimed) {
  constexpr unsigned kMasksMax = 24;
  const Case& made = GetParam();
  std::size_t dims = 0;
  for (const auto& shape : made.shapes) dims += shape.size();
  const bool few = (std::size_t{1} << dims) <= kMasksMax;
  std::minstd_rand random;
  for (unsigned i = 1; i < (few ? 1U << dims : kMasksMax); ++i) {
    const Shapes declared = Mask(made, few ? i : random() / 64);
    SCOPED_TRACE(::testing::PrintToString(declared));
    // Weights are variables, whose shapes are known; where they are not, sizes that fit together
    // are not always found.
    const bool found = !made.name.starts_with("conv2d") || declared[1] == made.shapes[1];
    Built built(made, declared);
    ASSERT_EQ(built.graph.status(), absl::OkStatus());
    const graph::Values values = Evaluate(built.graph, built.feeds);
    for (std::size_t n = 0; n < values.size(); ++n) {
      const Node& node = built.graph.node(static_cast<int>(n));
      const bool known =
          found || node.op != "Aten" || node.outputs[0].dtype != at::ScalarType::Undefined;
      if (known) ExpectDescribed(node, values[n]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Wrappers, ::testing::ValuesIn(AllCases()),
                         [](const auto& made) { return made.param.name; });

at::Tensor RunOne(const Output& output, const Built& built) {
  const graph::Values values = Evaluate(built.graph, built.feeds);
  return values[static_cast<std::size_t>(output.node())][static_cast<std::size_t>(output.index())];
}

TEST(Ops, AccuracyCountsRowsWhoseLargestEntryIsTheLabel) {
  Graph graph;
  const Output logits = graph.Const(at::eye(4).mul(3));
  const Output labels = graph.Const(at::tensor({0, 1, 2, 0}, at::kLong));
  const Output accuracy = ops::accuracy(logits, labels);
  const graph::Values values = Evaluate(graph, {});
  EXPECT_EQ(values[static_cast<std::size_t>(accuracy.node())][0].item<float>(), 0.75F);
}

TEST(Ops, ValuesAreLibtorchs) {
  const Case made = Of("x", {{4, 6}, {5, 6}, {5}}, [](const Outputs& in) {
    return Outputs{ops::gelu(ops::linear(in[0], in[1], in[2]))};
  });
  const Built built(made, made.shapes);
  const at::Tensor expected =
      at::gelu(at::linear(built.feeds.at("x0"), built.feeds.at("x1"), built.feeds.at("x2")));
  EXPECT_TRUE(at::equal(RunOne(built.outputs[0], built).detach(), expected));
}

TEST(Ops, DropoutZeroesAndScales) {
  const Case made =
      Of("x", {{100, 100}}, [](const Outputs& in) { return Outputs{ops::dropout(in[0], 0.25)}; });
  const Built built(made, made.shapes);
  const at::Tensor dropped = RunOne(built.outputs[0], built);
  const at::Tensor x = built.feeds.at("x0");
  const at::Tensor kept = dropped != 0;
  EXPECT_TRUE(at::allclose(dropped.masked_select(kept), x.masked_select(kept) / 0.75));
  // Of 10,000 draws; the standard deviation is 0.0043.
  EXPECT_NEAR(kept.to(at::kFloat).mean().item<double>(), 0.75, 0.03);
  EXPECT_TRUE(at::equal(RunOne(built.outputs[0], built), dropped)) << "the generator decides all";
}

TEST(Ops, DropoutChecksItsProbability) {
  for (const double bad : {-0.1, 1.0, std::nan("")}) {
    Graph graph;
    ops::dropout(graph.Placeholder("x", at::kFloat, {2}), bad);
    EXPECT_THAT(std::string(graph.status().message()), HasSubstr("dropout of 'x'"));
  }
}

TEST(Ops, ListsOfDifferentGraphsAreRefused) {
  Graph one;
  Graph two;
  ops::cat({one.Placeholder("a", at::kFloat, {2}), two.Placeholder("b", at::kFloat, {2})});
  EXPECT_THAT(std::string(one.status().message()),
              AllOf(HasSubstr("node 'cat'"), HasSubstr("'b' belongs to another graph")));
}

}  // namespace
}  // namespace weir
