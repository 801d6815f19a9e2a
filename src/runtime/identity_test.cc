#include "runtime/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace weir::runtime {
namespace {

using testing::HasSubstr;

/// Worker 1 of two, as it checks who calls it.
class IdentityTest : public testing::Test {
 protected:
  void ExpectRefused(const Claim& claim, const std::string& part) const {
    const absl::Status status = CheckClaim(claim, self_, cluster_);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }

  const ClusterSpec cluster_ = *ClusterSpec::ParseFlag("worker=127.0.0.2:1,127.0.0.3:1");
  const Identity self_{.cluster_id = cluster_.Id("weir"), .task = {"worker", 1}, .incarnation = 7};
  const Claim fits_{
      .cluster_id = self_.cluster_id, .from = {"worker", 0}, .to = self_.task, .to_incarnation = 7};
};

TEST_F(IdentityTest, WhoMeansThisTaskIsTaken) {
  EXPECT_TRUE(CheckClaim(fits_, self_, cluster_).ok());
}

// C1-02: a loopback name in a list leads a task to itself, or to another that listens there.
TEST_F(IdentityTest, WhoMeansAnotherTaskHearsWhomItHasFound) {
  Claim claim = fits_;
  claim.to = {"worker", 0};
  ExpectRefused(claim, "expected worker:0, found worker:1");
  claim.from = self_.task;  // itself
  ExpectRefused(claim, "expected worker:0, found worker:1");
}

TEST_F(IdentityTest, WhoClaimsToBeThisTaskIsRefused) {  // C1-07
  Claim claim = fits_;
  claim.from = self_.task;
  ExpectRefused(claim, "was started twice");
}

TEST_F(IdentityTest, WhoIsNoTaskOfTheClusterIsRefused) {
  Claim claim = fits_;
  claim.from = {"worker", 7};
  ExpectRefused(claim, "worker:7");
}

}  // namespace
}  // namespace weir::runtime
