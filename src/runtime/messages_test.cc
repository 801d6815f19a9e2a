#include "runtime/messages.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir::runtime {
namespace {

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(MessagesTest, HelloRoundTrips) {
  const Hello hello = {.cluster_id = 7,
                       .from = {"worker", 3},
                       .from_incarnation = 9,
                       .to = {"ps", 1},
                       .to_incarnation = 11,
                       .features = 5,
                       .token = "secret",
                       .status = absl::FailedPreconditionError("another cluster")};
  const auto decoded = DecodeHello(Bytes(Encode(hello)));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->cluster_id, hello.cluster_id);
  EXPECT_EQ(decoded->from, hello.from);
  EXPECT_EQ(decoded->from_incarnation, hello.from_incarnation);
  EXPECT_EQ(decoded->to, hello.to);
  EXPECT_EQ(decoded->to_incarnation, hello.to_incarnation);
  EXPECT_EQ(decoded->features, hello.features);
  EXPECT_EQ(decoded->token, hello.token);
  EXPECT_EQ(decoded->status, hello.status);
}

TEST(MessagesTest, DoneGoldenBytes) {
  const std::string body = Encode(DoneMessage{.status = absl::AbortedError("no"), .ticket = 258});
  const unsigned char golden[] = {10, 2, 0, 0, 0, 'n', 'o', 2, 1, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(body, std::string(reinterpret_cast<const char*>(golden), sizeof(golden)));
}

TEST(MessagesTest, RunGoldenBytes) {
  const std::string body =
      Encode(RunMessage{.plan = 1, .session = 2, .num_feeds = 3, .timeout_ms = 4});
  const unsigned char golden[] = {1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0,
                                  0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(body, std::string(reinterpret_cast<const char*>(golden), sizeof(golden)));
}

TEST(MessagesTest, AnAbortIsNeverOk) {
  EXPECT_EQ(DecodeAbort(Bytes(Encode(absl::OkStatus()))).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeAbort(Bytes(Encode(absl::CancelledError("x")))), absl::CancelledError("x"));
}

TEST(MessagesTest, WhatIsCutIsRefused) {
  const std::string hello = Encode(Hello{.cluster_id = 1,
                                         .from = {"a", 0},
                                         .from_incarnation = 1,
                                         .to = {},
                                         .to_incarnation = 0,
                                         .features = 0,
                                         .token = "",
                                         .status = {}});
  for (std::size_t size = 0; size < hello.size(); ++size)
    EXPECT_FALSE(DecodeHello(Bytes(hello.substr(0, size))).ok()) << size;
  EXPECT_FALSE(DecodeHello(Bytes(hello + "x")).ok());
}

RC_GTEST_PROP(MessagesTest, RandomBytesNeverCrash, (const std::string& body)) {
  (void)DecodeHello(Bytes(body));
  (void)DecodeRun(Bytes(body));
  (void)DecodeDone(Bytes(body));
  RC_ASSERT(!DecodeAbort(Bytes(body)).ok());
}

}  // namespace
}  // namespace weir::runtime
