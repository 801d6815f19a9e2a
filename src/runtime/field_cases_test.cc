// Reports from the field about tables over several tasks: docs/cases.md lists them.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "runtime/cluster_testing.h"
#include "weir/device_setter.h"
#include "weir/embedding.h"

namespace weir::runtime {
namespace {

TEST(SlicesCase, ALookupUsesTheirRealBorders) {  // C4-03
  TestCluster cluster(2, 1);
  cluster.StartAll();
  Graph graph;
  const DeviceScope scope(graph, ReplicaDeviceSetter({.ps_tasks = 2}));
  const at::Tensor rows = at::arange(6, at::kFloat).reshape({6, 1}).repeat({1, 3});
  const Variable table =
      graph.Variable("table", FromTensor(rows), {.partitioner = FixedSizePartitioner(2)});
  // Four rows and two, as only a graph from elsewhere can say.
  graph.node(table.handle().node()).attrs["sizes"] = std::vector<std::int64_t>{4, 2};
  const Output ids = graph.Placeholder("ids", at::kLong, {-1});
  const Output found = EmbeddingLookup(table, ids);
  auto session = cluster.worker(0).OpenSession(graph);
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<at::Tensor> asked = {at::arange(6, at::kLong)};
  for (std::int64_t id = 0; id < 6; ++id) asked.push_back(at::full({1}, id, at::kLong));
  for (const at::Tensor& some : asked) {
    const auto result = session->Run({{ids, some}}, {found}, {});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(at::equal((*result)[0], rows.index_select(0, some))) << some;
  }
}

TEST(SlicesCase, RowsInAnotherOrderThanTheyAreStoredInAreRefused) {
  TestCluster cluster(1, 1);
  cluster.StartAll();
  const auto open = [&](RowLayout layout) {
    Graph graph;
    const DeviceScope scope(graph, "/job:ps/task:0");
    graph.Variable("table", Zeros({6, 2}),
                   {.partitioner = FixedSizePartitioner(2), .layout = layout});
    return cluster.worker(0).OpenSession(graph).status();
  };
  ASSERT_TRUE(open(RowLayout::kDiv).ok());
  const absl::Status status = open(RowLayout::kMod);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("(mod)"), absl::string_view::npos) << status;
  EXPECT_TRUE(open(RowLayout::kDiv).ok());
}

}  // namespace
}  // namespace weir::runtime
