#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "graph/op_registry.h"
#include "graph/passes.h"
#include "graph/shard_map.h"
#include "weir/device_setter.h"
#include "weir/graph.h"
#include "weir/partitioner.h"

namespace weir {
namespace {

using Dims = std::vector<std::int64_t>;

struct Row {
  std::string name;
  Partitioner partitioner;
  Dims shape;
  int expected;
};

class PartitionerTable : public ::testing::TestWithParam<Row> {};

TEST_P(PartitionerTable, CutsIntoAsManySlices) {
  const absl::StatusOr<Slicing> slicing = GetParam().partitioner(GetParam().shape, at::kFloat);
  ASSERT_TRUE(slicing.ok()) << slicing.status();
  EXPECT_EQ(slicing->count, GetParam().expected);
}

// kernel_tests/partitioned_variables_test.py of the original.
const Row kOriginal[] = {
    {"fixed", FixedSizePartitioner(5), {10, 10}, 5},
    {"fixed of fewer rows", FixedSizePartitioner(11), {10, 10}, 10},
    {"axis 0", VariableAxisSizePartitioner(128 << 10, 0), {4, 8, 16, 32}, 1},
    {"axis 1", VariableAxisSizePartitioner(64 << 10, 1), {4, 8, 16, 32}, 1},
    {"axis 2", VariableAxisSizePartitioner(32 << 10, 2), {4, 8, 16, 32}, 2},
    {"axis 3, 2 KiB", VariableAxisSizePartitioner(2 << 10, 3), {4, 8, 16, 32}, 32},
    {"axis 3, 1 KiB", VariableAxisSizePartitioner(1 << 10, 3), {4, 8, 16, 32}, 32},
    {"axis 3, at most 2", VariableAxisSizePartitioner(1 << 10, 3, 2), {4, 8, 16, 32}, 2},
    {"min 2 KiB", MinMaxPartitioner(100, 0, 2 << 10), {2048}, 4},
    {"min 256 KiB", MinMaxPartitioner(100, 0, 256 << 10), {2048, 1024}, 32},
    {"min 256 KiB, max 16", MinMaxPartitioner(16, 0, 256 << 10), {2048, 1024}, 16},
    {"min 128 KiB", MinMaxPartitioner(100, 0, 128 << 10), {2048, 1024}, 64},
    {"min 512 KiB", MinMaxPartitioner(100, 0, 512 << 10), {2048, 1024}, 16},
    {"min, axis 1 of 1024", MinMaxPartitioner(100, 1, 256 << 10), {64, 1024, 1, 3}, 3},
    {"min, axis 3 of 3", MinMaxPartitioner(100, 3, 256 << 10), {64, 1024, 1, 3}, 3},
    {"min, three axes", MinMaxPartitioner(100, 0, 256 << 10), {16, 128, 1024}, 16},
};

// What the original's table does not say.
const Row kOwn[] = {
    {"min more than there is", MinMaxPartitioner(100, 0, 1 << 20), {2048}, 1},
    {"a row larger than a shard", VariableAxisSizePartitioner(1, 0), {7, 1024}, 7},
    {"auto with one task", AutoPartitioner(1), {50'000'000, 64}, 1},
    {"auto of a small one", AutoPartitioner(8), {1024, 1024}, 1},
    {"auto just above", AutoPartitioner(8), {1025, 1024}, 2},
    {"auto of a large one", AutoPartitioner(8), {50'000'000, 64}, 8},
    {"auto of a scalar", AutoPartitioner(8), {}, 1},
    {"auto of few long rows", AutoPartitioner(8), {3, 10'000'000}, 3},
};

INSTANTIATE_TEST_SUITE_P(Original, PartitionerTable, ::testing::ValuesIn(kOriginal));
INSTANTIATE_TEST_SUITE_P(Own, PartitionerTable, ::testing::ValuesIn(kOwn));

TEST(Partitioners, SizesCountTheDtype) {
  EXPECT_EQ(MinMaxPartitioner(100, 0, 256 << 10)({2048, 1024}, at::kDouble)->count, 64);
  EXPECT_EQ(VariableAxisSizePartitioner(32 << 10, 2)({4, 8, 16, 32}, at::kDouble)->count, 4);
}

TEST(Partitioners, RefuseWhatIsNotPositive) {
  for (const Partitioner& partitioner :
       {FixedSizePartitioner(0), FixedSizePartitioner(-1), VariableAxisSizePartitioner(0),
        VariableAxisSizePartitioner(-3), VariableAxisSizePartitioner(1, 0, -1),
        MinMaxPartitioner(0), MinMaxPartitioner(2, 0, 0), FixedSizePartitioner(2, 2),
        FixedSizePartitioner(2, -1)}) {
    EXPECT_EQ(partitioner({4, 4}, at::kFloat).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(Partitioners, RefuseMoreSlicesThanAGraphCanHold) {
  const Dims huge = {5'000'000'000};
  for (const Partitioner& partitioner :
       {VariableAxisSizePartitioner(1), FixedSizePartitioner(1 << 30),
        MinMaxPartitioner(1 << 30, 0, 1)}) {
    const absl::Status status = partitioner(huge, at::kFloat).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("slices along axis 0"), std::string::npos) << status;
  }
  const absl::Status status = VariableAxisSizePartitioner(1)(huge, at::kFloat).status();
  EXPECT_NE(status.message().find("5000000000 slices"), std::string::npos) << status;
  EXPECT_EQ(FixedSizePartitioner(1 << 14)(huge, at::kFloat)->count, 1 << 14);
}

TEST(Partitioners, AnErrorIsOneOfTheGraphAndNamesTheVariable) {
  Graph graph;
  graph.Variable("w", Zeros({4, 4}), {.partitioner = FixedSizePartitioner(2, 7)});
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(graph.status().message().find("w"), std::string::npos) << graph.status();
}

TEST(Partitioners, ModIsForRows) {
  Graph graph;
  graph.Variable("w", Zeros({4, 4}),
                 {.partitioner = FixedSizePartitioner(2, 1), .layout = RowLayout::kMod});
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument) << graph.status();
}

// Weights and biases of VGG-16 (Simonyan and Zisserman, 2014, configuration D): 138,357,544 floats.
std::vector<Dims> Vgg16() {
  std::vector<Dims> shapes;
  std::int64_t in = 3;
  for (const std::int64_t out : {64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512}) {
    shapes.push_back({out, in, 3, 3});
    shapes.push_back({out});
    in = out;
  }
  const Dims dense[] = {{4096, 25088}, {4096, 4096}, {1000, 4096}};
  for (const Dims& weight : dense) {
    shapes.push_back(weight);
    shapes.push_back({weight[0]});
  }
  return shapes;
}

// Bytes of the graph's variables by the device that they ask for.
std::map<std::string, std::int64_t> BytesByDevice(const GraphDef& graph) {
  std::map<std::string, std::int64_t> bytes;
  for (const Node& node : graph.nodes) {
    if (node.op != "Variable") continue;
    std::int64_t elements = 1;
    const Dims shape = graph::AttrOr(node, "shape", Dims{});
    for (const std::int64_t dim : shape) elements *= dim;
    const auto dtype = graph::AttrOr(node, "dtype", at::kFloat);
    bytes[node.device] += elements * static_cast<std::int64_t>(c10::elementSize(dtype));
  }
  return bytes;
}

TEST(Partitioners, VggIsSpreadOverFourTasks) {
  constexpr int kTasks = 4;
  Graph graph;
  {
    DeviceScope scope(graph, ReplicaDeviceSetter({.ps_tasks = kTasks}));
    int layer = 0;
    for (const Dims& shape : Vgg16()) {
      graph.Variable(absl::StrCat("w", layer++), Zeros(shape),
                     {.partitioner = AutoPartitioner(kTasks)});
    }
  }
  ASSERT_TRUE(graph.status().ok()) << graph.status();
  const absl::StatusOr<graph::ShardMap> shards = graph::ShardMapOf(graph.def());
  ASSERT_TRUE(shards.ok()) << shards.status();
  const absl::StatusOr<GraphDef> sliced = graph::ApplyShardMap(graph.def(), *shards);
  ASSERT_TRUE(sliced.ok()) << sliced.status();
  std::int64_t total = 0;
  std::int64_t largest = 0;
  const auto by_device = BytesByDevice(*sliced);
  for (const auto& [device, bytes] : by_device) {
    total += bytes;
    largest = std::max(largest, bytes);
  }
  EXPECT_EQ(by_device.size(), kTasks);
  EXPECT_EQ(total, 138'357'544 * std::int64_t{4});
  EXPECT_LE(largest * kTasks, total * 115 / 100);
}

}  // namespace
}  // namespace weir
