// That a session's wish for soft placement reaches the placer, on its own server and from
// elsewhere.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/cluster_testing.h"
#include "weir/ops.h"

namespace weir::runtime {
namespace {

class SoftPlacementTest : public ::testing::Test {
 protected:
  SoftPlacementTest() : cluster_(1, 1) {
    cluster_.StartAll();
    const DeviceScope scope(graph_, "/job:ps/task:0/device:GPU:0");
    two_ = ops::add(graph_.Const(at::ones({})), graph_.Const(at::ones({})));
  }

  void ExpectTwo(absl::StatusOr<Session> session) {
    ASSERT_TRUE(session.ok()) << session.status();
    const auto result = session->Run({}, {two_}, {});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ((*result)[0].item<float>(), 2);
  }

  static void ExpectRefused(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("GPU:0"));
  }

  TestCluster cluster_;
  Graph graph_;
  Output two_;
};

TEST_F(SoftPlacementTest, OnTheServersOwnSession) {
  ExpectRefused(cluster_.worker(0).OpenSession(graph_).status());
  ExpectTwo(cluster_.worker(0).OpenSession(graph_, {.soft_placement = true}));
}

TEST_F(SoftPlacementTest, OnASessionFromElsewhere) {
  ExpectRefused(cluster_.Connect({"worker", 0}, graph_).status());
  ExpectTwo(cluster_.Connect({"worker", 0}, graph_, {.soft_placement = true}));
}

}  // namespace
}  // namespace weir::runtime
