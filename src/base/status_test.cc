#include "base/status.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace weir {
namespace {

TEST(AnnotateTest, KeepsCodeAndPayloads) {
  absl::Status status = absl::UnavailableError("connection refused");
  status.SetPayload("weir/derived", absl::Cord("1"));
  const absl::Status annotated = Annotate(status, "task /job:ps/task:0");
  EXPECT_EQ(annotated.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(std::string(annotated.message()), "task /job:ps/task:0: connection refused");
  ASSERT_TRUE(annotated.GetPayload("weir/derived").has_value());
  EXPECT_EQ(std::string(*annotated.GetPayload("weir/derived")), "1");
}

TEST(AnnotateTest, LeavesOkAlone) {
  EXPECT_TRUE(Annotate(absl::OkStatus(), "anything").ok());
}

TEST(CatchAsTest, ReturnsOkWhenNothingIsThrown) {
  EXPECT_TRUE(CatchAs(absl::StatusCode::kInternal, "node", [] {}).ok());
}

TEST(CatchAsTest, StripsTheStackThatLibtorchAppends) {
  const absl::Status status = CatchAs(absl::StatusCode::kInvalidArgument, "node 'y'", [] {
    throw std::runtime_error(
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)\n"
        "Exception raised from meta at LinearAlgebra.cpp:1 (most recent call first):\nframe #0: x");
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "node 'y': mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)");
}

TEST(CatchAsTest, StripsTheStackOfFailedAllocationsToo) {
  const absl::Status status = CatchAs(absl::StatusCode::kResourceExhausted, "w", [] {
    throw std::runtime_error("you tried to allocate 4 bytes.\nframe #0: c10::alloc_cpu + 0x3a4");
  });
  EXPECT_EQ(std::string(status.message()), "w: you tried to allocate 4 bytes.");
}

TEST(CatchAsTest, NamesWhatIsNoStandardException) {
  const absl::Status status = CatchAs(absl::StatusCode::kInternal, "here", [] { throw 7; });
  EXPECT_EQ(std::string(status.message()), "here: unknown exception");
}

absl::StatusOr<int> Half(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError("odd");
  return value / 2;
}

absl::StatusOr<int> Quarter(int value) {
  WEIR_ASSIGN_OR_RETURN(const int half, Half(value));
  WEIR_RETURN_IF_ERROR(Half(half).status());
  return half / 2;
}

TEST(StatusMacrosTest, PassTheFirstErrorOn) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(7).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Quarter(6).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CheckDeathTest, NamesTheConditionThatFailed) {
  EXPECT_DEATH(WEIR_CHECK(1 + 1 == 3), "1 \\+ 1 == 3 does not hold");
}

}  // namespace
}  // namespace weir
