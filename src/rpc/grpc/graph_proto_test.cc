#include "rpc/grpc/graph_proto.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph/op_registry.h"
#include "rpc/grpc/tensor_proto.h"
#include "rpc/sample_graph_testing.h"

namespace weir::rpc {
namespace {

using ::testing::HasSubstr;

GraphDef WithAttr(AttrValue value) {
  GraphDef graph;
  Node& node = graph.nodes.emplace_back();
  node.name = "n";
  node.op = "Function";
  node.attrs["a"] = std::move(value);
  return graph;
}

v1::GraphDef Proto(const GraphDef& graph) {
  v1::GraphDef proto;
  const absl::Status status = ToProto(graph, &proto);
  EXPECT_TRUE(status.ok()) << status;
  return proto;
}

TEST(GraphProto, ComesBackUnchanged) {
  for (const GraphDef& graph : {SampleGraph(), SamplePartition(), SampleVariables(), GraphDef()}) {
    const auto back = FromProto(Proto(graph));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(Difference(graph, *back), "");
  }
}

TEST(GraphProto, OneGraphHasOneMessage) {
  EXPECT_EQ(Proto(SampleGraph()).SerializeAsString(), Proto(SampleGraph()).SerializeAsString());
}

TEST(GraphProto, ATensorOwnsItsBytes) {
  GraphDef graph = WithAttr(at::arange(4, at::kLong));
  auto back = FromProto(Proto(graph));
  std::get<at::Tensor>(graph.nodes[0].attrs["a"]).add_(1);
  EXPECT_EQ(std::get<at::Tensor>(back->nodes[0].attrs["a"])[0].item<std::int64_t>(), 0);
}

TEST(GraphProto, ALazyConjugateIsWrittenOut) {
  const at::Tensor real = at::arange(3, at::kFloat);
  const auto back = FromProto(Proto(WithAttr(at::complex(real, real).conj())));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(Difference(WithAttr(at::complex(real, -real)), *back), "");
}

TEST(GraphProto, WhatCannotTravelIsNamed) {
  const at::Tensor deep =
      at::arange(1).expand(std::vector<std::int64_t>(33, 1));  // too many dimensions
  for (const AttrValue& value :
       {AttrValue(at::kQInt8), AttrValue(deep), AttrValue(at::arange(3).to_sparse())}) {
    v1::GraphDef proto;
    const absl::Status status = ToProto(WithAttr(value), &proto);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("node 'n': attribute 'a': "));
  }
}

struct Refusal {
  const char* text;  // in the error
  std::function<void(v1::GraphDef&)> spoil;
};

/// Of a graph whose node "n" has one attribute, a tensor of 2 x 3 int64, and one output.
std::vector<Refusal> Refusals() {
  const auto tensor = [](v1::GraphDef& graph) {
    return graph.mutable_nodes(0)->mutable_attrs(0)->mutable_tensor();
  };
  const auto dims = [tensor](v1::GraphDef& graph, std::vector<std::int64_t> values) {
    tensor(graph)->mutable_dims()->Assign(values.begin(), values.end());
  };
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  return {
      {"48 bytes", [=](auto& graph) { tensor(graph)->mutable_data()->pop_back(); }},
      {"48 bytes", [=](auto& graph) { tensor(graph)->mutable_data()->push_back('x'); }},
      {"without a type", [=](auto& graph) { tensor(graph)->set_dtype(0); }},
      {"unknown dtype", [=](auto& graph) { tensor(graph)->set_dtype(13); }},
      {"unknown dtype", [=](auto& graph) { tensor(graph)->set_dtype(256 + 6); }},
      {"unknown dtype", [=](auto& graph) { tensor(graph)->set_dtype(~0U); }},
      {"neither 0 nor 1",
       [=](auto& graph) {
         tensor(graph)->set_dtype(1);
         dims(graph, {48});
         tensor(graph)->mutable_data()->back() = 2;
       }},
      {"negative dimension", [=](auto& graph) { dims(graph, {-1, 6}); }},
      {"negative dimension", [=](auto& graph) { dims(graph, {-2, -3}); }},
      {"2^63", [=](auto& graph) { dims(graph, {kHuge, 4}); }},
      {"2^63", [=](auto& graph) { dims(graph, {0, kHuge, 4}); }},
      {"33 dimensions", [=](auto& graph) { dims(graph, std::vector<std::int64_t>(33, 1)); }},
      {"without a value",
       [](auto& graph) { graph.mutable_nodes(0)->mutable_attrs(0)->clear_value(); }},
      {"unknown dtype",
       [](auto& graph) { graph.mutable_nodes(0)->mutable_attrs(0)->set_dtype(99); }},
      {"twice",
       [](auto& graph) {
         *graph.mutable_nodes(0)->add_attrs() = v1::Attr(graph.nodes(0).attrs(0));
       }},
      {"unknown dtype",
       [](auto& graph) { graph.mutable_nodes(0)->mutable_outputs(0)->set_dtype(77); }},
      {"dimension of -2",
       [](auto& graph) {
         graph.mutable_nodes(0)->mutable_outputs(0)->mutable_shape()->add_dims(-2);
       }},
  };
}

TEST(GraphProto, WhatNobodyWritesIsRefusedByName) {
  GraphDef graph = WithAttr(at::arange(6, at::kLong).reshape({2, 3}));
  graph.nodes[0].outputs.emplace_back();
  const v1::GraphDef good = Proto(graph);
  for (const Refusal& refusal : Refusals()) {
    v1::GraphDef bad = good;
    refusal.spoil(bad);
    const absl::Status status = FromProto(bad).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << refusal.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("node 'n'"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(refusal.text));
  }
}

/// What is read at all can be checked and written again.
void TryToRead(const std::string& bytes) {
  v1::GraphDef proto;
  if (!proto.ParseFromString(bytes)) return;
  const auto graph = FromProto(proto);
  if (!graph.ok()) {
    EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument) << graph.status();
    return;
  }
  (void)graph::Validate(*graph, /*allow_internal=*/true);
  EXPECT_EQ(Difference(*graph, *FromProto(Proto(*graph))), "");
}

TEST(GraphProto, RandomBytesDoNoHarm) {
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    TryToRead(bytes);
  }
}

TEST(GraphProto, ChangedBytesDoNoHarm) {
  GraphDef graph = SampleGraph();
  std::erase_if(graph.nodes, [](const Node& node) { return node.name == "big"; });
  graph.nodes.resize(40);
  const std::string good = Proto(graph).SerializeAsString();
  std::mt19937 random(12);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = good;
    for (std::uint32_t changes = 1 + random() % 4; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    TryToRead(bytes);
  }
}

}  // namespace
}  // namespace weir::rpc
