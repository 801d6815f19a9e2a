#include "graph/aten_schema.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "graph/op_registry.h"

namespace weir::graph {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Node Aten(const std::string& op, const std::string& overload, int inputs, AttrMap attrs = {}) {
  Node node{.name = "n", .op = "Aten", .attrs = std::move(attrs)};
  node.attrs["operator"] = op;
  node.attrs["overload"] = overload;
  for (int i = 0; i < inputs; ++i) node.inputs.push_back({i, 0});
  return node;
}

std::string BuildError(const Node& node) {
  const auto call = AtenCall::Build(node);
  if (call.ok()) return "";
  EXPECT_EQ(call.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(call.status().message());
}

std::vector<at::Tensor> Call(const Node& node, const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> outputs;
  const auto call = AtenCall::Build(node);
  EXPECT_TRUE(call.ok()) << call.status();
  if (!call.ok()) return {at::Tensor()};
  const absl::Status status = call->Run(inputs, nullptr, outputs);
  EXPECT_TRUE(status.ok()) << status;
  return status.ok() ? outputs : std::vector<at::Tensor>{at::Tensor()};
}

using Ints = std::vector<std::int64_t>;

TEST(AtenCall, TensorsComeInSchemaOrder) {
  const at::Tensor x = at::rand({2, 3});
  const at::Tensor w = at::rand({4, 3});
  const at::Tensor b = at::rand({4});
  EXPECT_TRUE(at::equal(Call(Aten("aten::linear", "", 3), {x, w, b})[0], at::linear(x, w, b)));
}

TEST(AtenCall, AnOptionalTensorIsNoneInThreeWays) {
  const at::Tensor x = at::rand({2, 3});
  const at::Tensor w = at::rand({4, 3});
  const at::Tensor expected = at::linear(x, w);
  EXPECT_TRUE(at::equal(Call(Aten("aten::linear", "", 2), {x, w})[0], expected));
  const Node none = Aten("aten::linear", "", 2, {{"bias", std::monostate()}});
  EXPECT_TRUE(at::equal(Call(none, {x, w})[0], expected));
  EXPECT_TRUE(at::equal(Call(Aten("aten::linear", "", 3), {x, w, at::Tensor()})[0], expected));
}

TEST(AtenCall, ANoneAttributeLeavesTheInputToTheNextArgument) {
  const at::Tensor x = at::rand({2, 3});
  const at::Tensor b = at::rand({3});
  const Node node = Aten("aten::layer_norm", "", 2,
                         {{"normalized_shape", Ints{3}}, {"weight", std::monostate()}});
  EXPECT_TRUE(at::equal(Call(node, {x, b})[0], at::layer_norm(x, {3}, {}, b)));
}

TEST(AtenCall, ListsOfTensorsHaveASize) {
  const at::Tensor a = at::rand({2, 3});
  const at::Tensor b = at::rand({2, 1});
  const Node node = Aten("aten::cat", "", 2, {{"tensors.size", 2}, {"dim", 1}});
  EXPECT_TRUE(at::equal(Call(node, {a, b})[0], at::cat({a, b}, 1)));
  EXPECT_THAT(BuildError(Aten("aten::cat", "", 2)), HasSubstr("'tensors.size'"));
  EXPECT_THAT(BuildError(Aten("aten::cat", "", 2, {{"tensors.size", 3}})), HasSubstr("at most 2"));
  EXPECT_THAT(BuildError(Aten("aten::cat", "", 2, {{"tensors.size", -1}})), HasSubstr("at most 2"));
  EXPECT_THAT(BuildError(Aten("aten::cat", "", 2, {{"tensors.size", 1}})),
              HasSubstr("takes 1 tensors with these attributes, has 2 inputs"));
}

TEST(AtenCall, ListsMayHaveHolesWhereTheSchemaSaysSo) {
  const at::Tensor x = at::arange(12).view({3, 4});
  const at::Tensor columns = at::tensor({0, 2}, at::kLong);
  const Node node =
      Aten("aten::index", "Tensor", 2,
           {{"indices.size", 1}, {"indices.present", std::vector<bool>{false, true}}});
  EXPECT_TRUE(at::equal(Call(node, {x, columns})[0], at::index_select(x, 1, columns)));
  EXPECT_THAT(
      BuildError(Aten("aten::index", "Tensor", 2,
                      {{"indices.size", 1}, {"indices.present", std::vector<bool>{false}}})),
      HasSubstr("of which 1 are true"));
  EXPECT_THAT(BuildError(Aten("aten::cat", "", 1,
                              {{"tensors.size", 1}, {"tensors.present", std::vector<bool>{true}}})),
              HasSubstr("may have holes"));
}

TEST(AtenCall, ListsOfTensorsAreReturnedFlat) {
  const std::vector<at::Tensor> parts =
      Call(Aten("aten::split", "Tensor", 1, {{"split_size", 2}}), {at::arange(5)});
  ASSERT_EQ(parts.size(), 3);
  EXPECT_TRUE(at::equal(parts[2], at::tensor({4}, at::kLong)));
  EXPECT_EQ(AtenOperator::Find("aten::split", "Tensor")->num_outputs(), std::nullopt);
  EXPECT_EQ(AtenOperator::Find("aten::sort", "")->num_outputs(), 2);
}

TEST(AtenCall, OneNumberFillsAListOfFixedLength) {
  const at::Tensor x = at::rand({1, 1, 4, 4});
  const Node one = Aten("aten::max_pool2d", "", 1, {{"kernel_size", 2}});
  const Node two = Aten("aten::max_pool2d", "", 1, {{"kernel_size", Ints{2, 2}}});
  EXPECT_TRUE(at::equal(Call(one, {x})[0], Call(two, {x})[0]));
  EXPECT_THAT(BuildError(Aten("aten::permute", "", 1, {{"dims", 0}})),
              HasSubstr("argument 'dims' takes int[], not int"));
}

TEST(AtenCall, AttributesHaveTheSchemasTypes) {
  const at::Tensor x = at::rand({2, 3});
  // Scalar and float take an int; a dtype is a dtype.
  EXPECT_TRUE(at::equal(Call(Aten("aten::mul", "Scalar", 1, {{"other", 2}}), {x})[0], x * 2));
  EXPECT_TRUE(at::equal(Call(Aten("aten::mul", "Scalar", 1, {{"other", 0.5}}), {x})[0], x * 0.5));
  EXPECT_EQ(Call(Aten("aten::to", "dtype", 1, {{"dtype", at::kDouble}}), {x})[0].scalar_type(),
            at::kDouble);
  EXPECT_TRUE(
      at::equal(Call(Aten("aten::gelu", "", 1, {{"approximate", std::string("tanh")}}), {x})[0],
                at::gelu(x, "tanh")));
  EXPECT_TRUE(at::equal(Call(Aten("aten::sum", "dim_IntList", 1,
                                  {{"dim", std::monostate()}, {"dtype", std::monostate()}}),
                             {x})[0],
                        x.sum()));
  EXPECT_TRUE(Call(Aten("aten::clone", "", 1, {{"memory_format", std::string("channels_last")}}),
                   {at::rand({2, 3, 4, 4})})[0]
                  .is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(Call(Aten("aten::upsample_nearest2d", "vec", 1,
                      {{"output_size", std::monostate()}, {"scale_factors", Ints{2, 3}}}),
                 {at::rand({1, 1, 2, 2})})[0]
                .sizes(),
            at::IntArrayRef({1, 1, 4, 6}));
}

TEST(AtenCall, WrongTypesNameNodeArgumentAndSchema) {
  const std::vector<std::pair<AttrValue, std::string>> wrong = {
      {true, "bool"},           {0.5, "float"},           {std::string("x"), "string"},
      {at::kFloat, "dtype"},    {Ints{1}, "list of int"}, {std::monostate(), "None"},
      {at::zeros({}), "tensor"}};
  for (const auto& [value, type] : wrong) {
    EXPECT_THAT(BuildError(Aten("aten::softmax", "int", 1, {{"dim", value}})),
                AllOf(HasSubstr("node 'n'"), HasSubstr("argument 'dim' takes int, not " + type),
                      HasSubstr("(schema: aten::softmax.int(Tensor self, int dim")));
  }
  EXPECT_THAT(BuildError(Aten("aten::to", "dtype", 1, {{"dtype", 6}})),
              HasSubstr("takes ScalarType, not int"));
  EXPECT_THAT(
      BuildError(Aten("aten::to", "dtype", 1, {{"dtype", static_cast<at::ScalarType>(99)}})),
      HasSubstr("takes ScalarType"));
  EXPECT_THAT(BuildError(Aten("aten::relu", "", 1, {{"self", 3}})), HasSubstr("comes as an input"));
}

TEST(AtenCall, ArgumentsMustBeThereAndExist) {
  EXPECT_THAT(BuildError(Aten("aten::softmax", "int", 1)), HasSubstr("'dim' (int) is missing"));
  EXPECT_THAT(BuildError(Aten("aten::matmul", "", 1)), HasSubstr("'other' (Tensor) is missing"));
  EXPECT_THAT(BuildError(Aten("aten::relu", "", 2)),
              HasSubstr("takes 1 tensors with these attributes, has 2 inputs"));
  EXPECT_THAT(BuildError(Aten("aten::relu", "", 1, {{"inplace", true}})),
              AllOf(HasSubstr("has no argument 'inplace'"), HasSubstr("aten::relu(Tensor self)")));
  EXPECT_EQ(BuildError(Aten("aten::relu", "", 1, {{"segment", 3}})), "");
}

TEST(AtenCall, PlacementIsNotAnArgument) {
  EXPECT_EQ(BuildError(Aten("aten::zeros", "", 0, {{"size", Ints{2}}})), "");
  EXPECT_EQ(
      BuildError(Aten("aten::zeros", "", 0, {{"size", Ints{2}}, {"device", std::monostate()}})),
      "");
  for (const char* name : {"device", "layout", "pin_memory"}) {
    EXPECT_THAT(BuildError(Aten("aten::zeros", "", 0, {{"size", Ints{2}}, {name, false}})),
                HasSubstr("is decided by where the node is placed"));
  }
  EXPECT_THAT(BuildError(Aten("aten::to", "device", 1, {{"dtype", at::kFloat}})),
              HasSubstr("'device'"));
}

TEST(AtenCall, RandomOperatorsDrawFromTheGeneratorGiven) {
  const auto call = AtenCall::Build(Aten("aten::bernoulli", "p", 1, {{"p", 0.5}}));
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_TRUE(call->needs_generator());
  EXPECT_FALSE(AtenCall::Build(Aten("aten::relu", "", 1))->needs_generator());
  const at::Tensor x = at::zeros({100});
  const auto draw = [&](std::uint64_t seed) {
    const at::Generator generator = at::detail::createCPUGenerator(seed);
    std::vector<at::Tensor> outputs;
    EXPECT_TRUE(call->Run({x}, &generator, outputs).ok());
    return outputs.at(0);
  };
  EXPECT_TRUE(at::equal(draw(1), draw(1)));
  EXPECT_FALSE(at::equal(draw(1), draw(2)));
  EXPECT_THAT(BuildError(Aten("aten::bernoulli", "p", 1, {{"p", 0.5}, {"generator", 3}})),
              HasSubstr("is a generator"));
}

TEST(AtenCall, OneServesManyThreads) {
  const Node node = Aten("aten::cat", "", 2, {{"tensors.size", 2}, {"dim", 1}});
  const auto call = AtenCall::Build(node);
  ASSERT_TRUE(call.ok());
  const at::Tensor a = at::rand({2, 3});
  const at::Tensor expected = at::cat({a, a}, 1);
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        std::vector<at::Tensor> outputs;
        if (call->Run({a, a}, nullptr, outputs).ok() && at::equal(outputs[0], expected)) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 400);
}

TEST(AtenCall, WhatTheOperatorThrowsIsAnErrorWithTheNodesName) {
  const auto call = AtenCall::Build(Aten("aten::matmul", "", 2));
  ASSERT_TRUE(call.ok());
  std::vector<at::Tensor> outputs;
  const absl::Status status = call->Run({at::rand({2, 3}), at::rand({2, 3})}, nullptr, outputs);
  EXPECT_EQ(status, absl::InvalidArgumentError(
                        "node 'n' (aten::matmul): mat1 and mat2 shapes cannot be multiplied (2x3 "
                        "and 2x3)"));
}

TEST(AtenCall, AnAbsentTensorIsAnErrorWhereOneIsNeeded) {
  const auto call = AtenCall::Build(Aten("aten::add", "Tensor", 2));
  ASSERT_TRUE(call.ok());
  std::vector<at::Tensor> outputs;
  const absl::Status status = call->Run({at::rand({2}), at::Tensor()}, nullptr, outputs);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("node 'n' (aten::add)"), HasSubstr("'other' is absent")));
}

std::string FindError(const std::string& op, const std::string& overload) {
  const auto found = AtenOperator::Find(op, overload);
  return found.ok() ? "" : std::string(found.status().message());
}

TEST(AtenPurity, OperatorsThatWriteAreRefused) {
  for (const auto& [op, overload] :
       std::map<std::string, std::string>{{"aten::add_", "Tensor"},
                                          {"aten::add", "out"},
                                          {"aten::embedding_renorm_", ""},
                                          {"aten::_native_batch_norm_legit", ""},
                                          {"aten::set_data", ""}}) {
    EXPECT_THAT(FindError(op, overload),
                AllOf(HasSubstr(op), HasSubstr("writes to its arguments"), HasSubstr("schema: ")));
  }
}

TEST(AtenPurity, OperatorsThatReturnNoTensorAreRefused) {
  EXPECT_THAT(FindError("aten::item", ""), HasSubstr("returns a Scalar"));
  EXPECT_THAT(FindError("aten::size", "int"), HasSubstr("returns a int"));
  EXPECT_THAT(FindError("aten::equal", ""), HasSubstr("returns a bool"));
  EXPECT_THAT(FindError("aten::_assert_async", ""), HasSubstr("returns nothing"));
}

TEST(AtenPurity, UnseededRandomOperatorsAreRefused) {
  EXPECT_THAT(FindError("aten::dropout", ""), HasSubstr("use weir::ops::dropout"));
  EXPECT_THAT(FindError("aten::native_dropout", ""), HasSubstr("use weir::ops::dropout"));
  EXPECT_THAT(FindError("aten::rand_like", ""), HasSubstr("its overload 'generator' takes one"));
  EXPECT_THAT(FindError("aten::randperm", ""), HasSubstr("its overload 'generator' takes one"));
  EXPECT_THAT(FindError("aten::alpha_dropout", ""), HasSubstr("without a generator"));
  EXPECT_EQ(FindError("aten::rand_like", "generator"), "");
  EXPECT_EQ(FindError("aten::multinomial", ""), "");
  EXPECT_THAT(FindError("aten::empty", "memory_format"), HasSubstr("use aten::zeros"));
}

// Every operator of the dispatcher that draws, and that Find lets through, takes a generator or has
// a rate of dropout that Build looks at.
TEST(AtenPurity, NoOperatorDrawsWithoutAGenerator) {
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (!handle || !handle->hasTag(at::Tag::nondeterministic_seeded)) continue;
    if (!AtenOperator::Find(name.name, name.overload_name).ok()) continue;
    bool accounted_for = false;
    for (const c10::Argument& argument : handle->schema().arguments()) {
      accounted_for = accounted_for || argument.name() == "generator" ||
                      argument.name() == "dropout" || argument.name() == "dropout_p";
    }
    EXPECT_TRUE(accounted_for) << handle->schema();
  }
}

// The same for statistics that are overwritten: operators that have them are known one by one.
TEST(AtenPurity, EveryOperatorWithRunningStatisticsIsKnown) {
  const std::vector<std::string> pure = {"_functional", "_backward", "_no_update", "_no_training"};
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (!handle || !AtenOperator::Find(name.name, name.overload_name).ok()) continue;
    AttrMap attrs;
    int inputs = 0;
    bool has_statistics = false;
    for (const c10::Argument& argument : handle->schema().arguments()) {
      const std::string type = argument.real_type()->str();
      has_statistics = has_statistics || argument.name() == "running_mean";
      if (type == "Tensor" || type == "Tensor?") ++inputs;
      if (type == "bool") attrs[argument.name()] = true;
      if (type == "float") attrs[argument.name()] = 0.1;
      if (type == "int") attrs[argument.name()] = 1;
      if (type == "bool[]") attrs[argument.name()] = std::vector<bool>(3, true);
    }
    if (!has_statistics) continue;
    const bool is_pure = std::ranges::any_of(
        pure, [&](const std::string& part) { return name.name.find(part) != std::string::npos; });
    const std::string error = BuildError(Aten(name.name, name.overload_name, inputs, attrs));
    if (is_pure) {
      EXPECT_EQ(error, "") << name.name;
    } else {
      EXPECT_THAT(error, HasSubstr("overwrites running_mean and running_var")) << name.name;
    }
  }
}

AttrMap BatchNorm(bool training) {
  return {{"training", training}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", false}};
}

TEST(AtenPurity, BatchNormIsPureWithoutStatisticsOrTraining) {
  EXPECT_THAT(BuildError(Aten("aten::batch_norm", "", 5, BatchNorm(true))),
              AllOf(HasSubstr("node 'n'"), HasSubstr("aten::_native_batch_norm_legit_functional")));
  EXPECT_EQ(BuildError(Aten("aten::batch_norm", "", 5, BatchNorm(false))), "");
  EXPECT_EQ(BuildError(Aten("aten::batch_norm", "", 3, BatchNorm(true))), "");
}

TEST(AtenPurity, DropoutInsideAnOperatorMustBeOff) {
  EXPECT_EQ(BuildError(Aten("aten::scaled_dot_product_attention", "", 3)), "");
  EXPECT_THAT(BuildError(Aten("aten::scaled_dot_product_attention", "", 3, {{"dropout_p", 0.1}})),
              HasSubstr("its dropout draws random numbers"));
}

TEST(AtenPurity, ViewsAreFine) {
  EXPECT_EQ(FindError("aten::view", ""), "");
  EXPECT_EQ(FindError("aten::transpose", "int"), "");
  EXPECT_EQ(FindError("aten::detach", ""), "");
}

}  // namespace
}  // namespace weir::graph
