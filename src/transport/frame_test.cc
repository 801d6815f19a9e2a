#include "transport/frame.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <string>

namespace weir::transport {
namespace {

using HeaderBytes = std::array<std::byte, kHeaderBytes>;

HeaderBytes Encode(const FrameHeader& header) {
  HeaderBytes bytes;
  bytes.fill(std::byte{0xee});  // nothing may be left unwritten
  EncodeHeader(header, bytes);
  return bytes;
}

// Written out by hand from the table in frame.h: the format may not change by accident.
constexpr std::array<unsigned char, kHeaderBytes> kGolden = {
    'W',  'E',  'I',  'R',                           // magic
    0x01,                                            // version
    0x04,                                            // type: tensor
    0x02, 0x01,                                      // flags 0x0102
    0x06, 0x05, 0x04, 0x03,                          // epoch 0x03040506
    0x0a, 0x09, 0x08, 0x07,                          // edge 0x0708090a
    0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,  // origin
    0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21,  // step
    0x00, 0x00, 0x01, 0x00,                          // body_bytes 65536
    0x00, 0x00, 0x00, 0x00,                          // reserved
    0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31,  // payload_bytes
};

constexpr FrameHeader kGoldenHeader = {
    .type = FrameType::kTensor,
    .flags = 0x0102,
    .epoch = 0x03040506,
    .edge = 0x0708090a,
    .origin = 0x1112131415161718,
    .step = 0x2122232425262728,
    .body_bytes = 0x00010000,
    .payload_bytes = 0x3132333435363738,
};

void ExpectEqual(const FrameHeader& a, const FrameHeader& b) {
  EXPECT_EQ(a.type, b.type);
  EXPECT_EQ(a.flags, b.flags);
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.edge, b.edge);
  EXPECT_EQ(a.origin, b.origin);
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.body_bytes, b.body_bytes);
  EXPECT_EQ(a.payload_bytes, b.payload_bytes);
}

TEST(FrameTest, EncodesTheGoldenBytes) {
  const HeaderBytes bytes = Encode(kGoldenHeader);
  for (std::size_t i = 0; i < kHeaderBytes; ++i) {
    EXPECT_EQ(static_cast<unsigned>(bytes[i]), kGolden[i]) << "offset " << i;
  }
}

TEST(FrameTest, DecodesTheGoldenBytes) {
  HeaderBytes bytes;
  std::memcpy(bytes.data(), kGolden.data(), kHeaderBytes);
  const auto decoded = DecodeHeader(bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  ExpectEqual(*decoded, kGoldenHeader);
}

TEST(FrameTest, TypesHaveTheirNumbersOnTheWire) {
  EXPECT_EQ(static_cast<int>(FrameType::kHello), 1);
  EXPECT_EQ(static_cast<int>(FrameType::kHelloAck), 2);
  EXPECT_EQ(static_cast<int>(FrameType::kRun), 3);
  EXPECT_EQ(static_cast<int>(FrameType::kTensor), 4);
  EXPECT_EQ(static_cast<int>(FrameType::kDone), 5);
  EXPECT_EQ(static_cast<int>(FrameType::kAbort), 6);
}

struct BadHeader {
  std::size_t offset;
  unsigned char value;
  const char* said;
};

class BadHeaderTest : public testing::TestWithParam<BadHeader> {};

TEST_P(BadHeaderTest, IsRefusedWithItsReason) {
  HeaderBytes bytes = Encode({.type = FrameType::kHello, .body_bytes = kBodyBytesMax});
  ASSERT_TRUE(DecodeHeader(bytes).ok());
  bytes[GetParam().offset] = std::byte{GetParam().value};
  const absl::Status status = DecodeHeader(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find(GetParam().said), std::string::npos) << status;
}

INSTANTIATE_TEST_SUITE_P(All, BadHeaderTest,
                         testing::Values(BadHeader{0, 'w', "no frame"},
                                         BadHeader{3, 'Q', "no frame"},
                                         BadHeader{4, 0, "version 0"}, BadHeader{4, 2, "version 2"},
                                         BadHeader{5, 0, "unknown frame type 0"},
                                         BadHeader{5, 7, "unknown frame type 7"},
                                         BadHeader{5, 255, "unknown frame type 255"},
                                         BadHeader{32, 1, "65537 bytes"},
                                         BadHeader{35, 0x80, "bytes"}, BadHeader{36, 1, "reserved"},
                                         BadHeader{39, 0x80, "reserved"}));

RC_GTEST_PROP(FrameProperty, WhatIsEncodedIsDecoded,
              (std::uint16_t flags, std::uint32_t epoch, std::uint32_t edge, std::uint64_t origin,
               std::uint64_t step, std::uint64_t payload_bytes)) {
  const FrameHeader header = {
      .type = static_cast<FrameType>(*rc::gen::inRange(1, 7)),
      .flags = flags,
      .epoch = epoch,
      .edge = edge,
      .origin = origin,
      .step = step,
      .body_bytes = *rc::gen::inRange<std::uint32_t>(0, kBodyBytesMax + 1),
      .payload_bytes = payload_bytes,
  };
  const auto decoded = DecodeHeader(Encode(header));
  RC_ASSERT(decoded.ok());
  ExpectEqual(*decoded, header);
}

/// Whatever is accepted means exactly the bytes that were read.
RC_GTEST_PROP(FrameProperty, AcceptedBytesAreTheOnlyEncodingOfWhatTheyMean, ()) {
  HeaderBytes bytes = Encode({.type = FrameType::kRun, .step = 7});
  const auto mutations =
      *rc::gen::container<std::vector<std::pair<std::size_t, unsigned char>>>(rc::gen::pair(
          rc::gen::inRange<std::size_t>(0, kHeaderBytes), rc::gen::arbitrary<unsigned char>()));
  for (const auto& [offset, value] : mutations) bytes[offset] = std::byte{value};
  const auto decoded = DecodeHeader(bytes);
  if (decoded.ok()) {
    RC_ASSERT(Encode(*decoded) == bytes);
  } else {
    RC_ASSERT(decoded.status().code() == absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace weir::transport
