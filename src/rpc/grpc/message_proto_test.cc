// Messages besides graphs: what no correct peer writes. (What one writes is in the conformance
// suite.)
#include <gtest/gtest.h>

#include "rpc/grpc/caller_proto.h"
#include "rpc/grpc/reply_proto.h"
#include "rpc/grpc/request_proto.h"
#include "rpc/grpc/status_proto.h"

namespace weir::rpc {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(StatusProto, KeepsEveryCode) {
  for (int code = 0; code <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), code == 0 ? "" : "text");
    v1::Status proto;
    ToProto(status, &proto);
    EXPECT_EQ(FromProto(proto), status);
  }
}

TEST(StatusProto, AnUnknownCodeIsUnknown) {
  for (const int code : {-1, 17, 1 << 30}) {
    v1::Status proto;
    proto.set_code(code);
    proto.set_message("the text");
    const absl::Status status = FromProto(proto);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnknown);
    EXPECT_NE(std::string(status.message()).find("the text"), std::string::npos);
  }
}

TEST(CallerProto, ATaskHasNoNegativeIndex) {
  v1::TaskId task;
  task.set_index(-1);
  EXPECT_EQ(FromProto(task).status().code(), kInvalid);
  v1::AnnounceRequest request;
  *request.mutable_caller()->mutable_from() = task;
  EXPECT_EQ(MethodFromProto(request).status().code(), kInvalid);
}

TEST(RequestProto, ABadGraphMakesABadRequest) {
  v1::GraphDef bad;
  bad.add_nodes()->add_outputs()->set_dtype(200);
  v1::EnsureVariablesRequest ensure;
  *ensure.mutable_variables() = bad;
  EXPECT_EQ(MethodFromProto(ensure).status().code(), kInvalid);
  v1::RegisterPlanRequest plan;
  *plan.add_partitions()->mutable_graph() = bad;
  EXPECT_EQ(MethodFromProto(plan).status().code(), kInvalid);
  v1::OpenSessionRequest session;
  *session.mutable_graph() = bad;
  EXPECT_EQ(MethodFromProto(session).status().code(), kInvalid);
}

TEST(RequestProto, ABadGraphIsNotWritten) {
  GraphDef graph;
  graph.nodes.emplace_back().attrs["a"] = at::kQInt8;
  SessionRequest session;
  session.graph = graph;
  PlanRegistration plan;
  plan.partitions.push_back({"", graph});
  EXPECT_EQ(MakeEnsureVariablesRequest({}, graph, true).status().code(), kInvalid);
  EXPECT_EQ(MakeOpenSessionRequest({}, session).status().code(), kInvalid);
  EXPECT_EQ(MakeRegisterPlanRequest({}, plan).status().code(), kInvalid);
}

TEST(ReplyProto, ABadReplyIsRefused) {
  v1::MakePlanReply plan;
  plan.set_num_fetches(-1);
  EXPECT_EQ(FromProto(plan).status().code(), kInvalid);
  v1::GetStatusReply status;
  status.mutable_task()->add_variables()->add_shape(-2);
  EXPECT_EQ(FromProto(status).status().code(), kInvalid);
}

}  // namespace
}  // namespace weir::rpc
