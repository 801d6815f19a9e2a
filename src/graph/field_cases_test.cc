// Reports from the field about what lives where: docs/cases.md lists them.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/op_registry.h"
#include "graph/passes.h"
#include "graph/shard_map.h"
#include "weir/device_setter.h"
#include "weir/graph.h"
#include "weir/partitioner.h"

namespace weir::graph {
namespace {

using Dims = std::vector<std::int64_t>;

/// The nodes of all variables, those that are cut slice by slice.
std::vector<Node> VariablesOf(const Graph& graph) {
  EXPECT_TRUE(graph.status().ok()) << graph.status();
  const auto shards = ShardMapOf(graph.def());
  EXPECT_TRUE(shards.ok()) << shards.status();
  auto sliced = ApplyShardMap(graph.def(), *shards);
  EXPECT_TRUE(sliced.ok()) << sliced.status();
  std::vector<Node> variables = std::move(sliced->nodes);
  std::erase_if(variables, [](const Node& node) { return node.op != "Variable"; });
  return variables;
}

Dims ShapeOf(const Node& variable) {
  return *GetAttr<Dims>(variable, "shape");
}

std::int64_t BytesOf(const Node& variable) {
  std::int64_t bytes = sizeof(float);
  for (const std::int64_t dim : ShapeOf(variable)) bytes *= dim;
  return bytes;
}

/// A perceptron of 784, 128 and 10 units: the bytes of each of four ps tasks.
Dims BytesOfFourPs(PlacementStrategy strategy, const Partitioner& of_first_weight) {
  Graph graph;
  {
    DeviceScope scope(graph, ReplicaDeviceSetter({.ps_tasks = 4, .strategy = strategy}));
    graph.Variable("w1", Zeros({784, 128}), {.partitioner = of_first_weight});
    graph.Variable("b1", Zeros({128}));
    graph.Variable("w2", Zeros({128, 10}));
    graph.Variable("b2", Zeros({10}));
  }
  std::map<std::string, std::int64_t> bytes;
  for (const Node& variable : VariablesOf(graph)) bytes[variable.device] += BytesOf(variable);
  Dims all;
  for (const auto& [device, sum] : bytes) all.push_back(sum);
  return all;
}

TEST(PlacementCase, WholeVariablesAreUnevenHoweverTheyAreDealt) {  // C4-01
  for (const PlacementStrategy strategy :
       {PlacementStrategy::kRoundRobin, PlacementStrategy::kGreedyBytes}) {
    EXPECT_EQ(BytesOfFourPs(strategy, nullptr), (Dims{401'408, 512, 5'120, 40}));
  }
}

TEST(PlacementCase, PartitionedAndGreedyItIsEven) {  // C4-01
  Dims bytes = BytesOfFourPs(PlacementStrategy::kGreedyBytes, FixedSizePartitioner(4));
  std::ranges::sort(bytes, std::greater<>());
  EXPECT_EQ(bytes, (Dims{105'472, 100'864, 100'392, 100'352}));
}

/// The sizes, along `axis`, of a variable in three slices.
Dims SizesOfThree(const Dims& shape, std::size_t axis) {
  Graph graph;
  graph.Variable("table", Zeros(shape),
                 {.partitioner = FixedSizePartitioner(3, static_cast<int>(axis))});
  Dims sizes;
  std::int64_t bytes = 0, whole = sizeof(float);
  for (const std::int64_t dim : shape) whole *= dim;
  for (const Node& slice : VariablesOf(graph)) {
    sizes.push_back(ShapeOf(slice)[axis]);
    bytes += BytesOf(slice);
  }
  EXPECT_EQ(bytes, whole);
  return sizes;
}

TEST(SlicesCase, TheFirstHaveTheRest) {  // C4-02
  EXPECT_EQ(SizesOfThree({100'000, 256}, 0), (Dims{33'334, 33'333, 33'333}));
  EXPECT_EQ(SizesOfThree({7, 2}, 0), (Dims{3, 2, 2}));
  EXPECT_EQ(SizesOfThree({7, 256}, 1), (Dims{86, 85, 85}));
}

}  // namespace
}  // namespace weir::graph
