#include "transport/frame_decoder.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "transport/sealed_frame.h"

namespace weir::transport {
namespace {

Buffer NewBuffer(std::size_t size) {
  std::shared_ptr<std::byte[]> bytes = std::make_shared<std::byte[]>(size);
  std::byte* const data = bytes.get();
  return {std::move(bytes), data, size};
}

std::string Text(const Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data), buffer.size};
}

struct Plain {
  std::uint64_t step;
  std::string body;
  std::string payload;
  bool operator==(const Plain&) const = default;
};

Frame ToFrame(const Plain& plain) {
  Frame frame{.header = {.type = FrameType::kTensor, .step = plain.step},
              .body = plain.body,
              .payload = {}};
  if (!plain.payload.empty()) {
    frame.payload = NewBuffer(plain.payload.size());
    std::memcpy(frame.payload.data, plain.payload.data(), plain.payload.size());
  }
  return frame;
}

std::string ToBytes(const Plain& plain) {
  std::string bytes;
  const SealedFrame sealed = Seal(ToFrame(plain));
  for (const auto part : sealed.Parts()) {
    bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  return bytes;
}

class Collector : public FrameHandler {
 public:
  absl::StatusOr<Buffer> OnPayload(const FrameHeader& header, std::span<const std::byte>) override {
    ++payloads;
    if (!payload_error.ok()) return payload_error;
    given = NewBuffer(header.payload_bytes - missing);
    return given;
  }
  absl::Status OnFrame(const FrameHeader& header, std::span<const std::byte> body,
                       Buffer payload) override {
    if (payload.size > 0) {
      EXPECT_EQ(payload.data, given.data);
    }
    EXPECT_EQ(body.size(), header.body_bytes);
    frames.push_back({header.step,
                      std::string(reinterpret_cast<const char*>(body.data()), body.size()),
                      Text(payload)});
    return frame_error;
  }
  void OnClosed(const absl::Status&) override {}

  std::vector<Plain> frames;
  int payloads = 0;
  Buffer given;
  std::size_t missing = 0;
  absl::Status payload_error;
  absl::Status frame_error;
};

/// Feeds at most `piece` bytes at a time, as a socket would.
absl::Status Feed(FrameDecoder& decoder, Collector& collector, std::string_view bytes,
                  std::size_t piece) {
  while (!bytes.empty()) {
    std::size_t filled = 0;
    for (const std::span<std::byte> space : decoder.Space()) {
      const std::size_t count = std::min({space.size(), bytes.size(), piece - filled});
      if (count > 0) std::memcpy(space.data(), bytes.data(), count);
      bytes.remove_prefix(count);
      filled += count;
    }
    EXPECT_GT(filled, 0U);
    decoder.Filled(filled);
    bool delivered = true;
    while (delivered) {
      auto next = decoder.DeliverNext(collector);
      if (!next.ok()) return next.status();
      delivered = *next;
    }
  }
  return absl::OkStatus();
}

/// However the stream is cut, and however little may be read at a time, the same frames come out.
RC_GTEST_PROP(FrameDecoderProperty, PiecesDoNotMatter, ()) {
  const auto sizes = *rc::gen::container<std::vector<std::pair<std::size_t, std::size_t>>>(
      *rc::gen::inRange<std::size_t>(0, 12),
      rc::gen::pair(rc::gen::element<std::size_t>(0, 1, 47, 5000, kBodyBytesMax),
                    rc::gen::element<std::size_t>(0, 1, 48, 65535, 65537, 200'000)));
  const auto transfer = *rc::gen::element<std::size_t>(1000, 65536, 1 << 20);
  const auto piece = *rc::gen::inRange<std::size_t>(1, 100'000) + 500;
  std::vector<Plain> sent;
  std::string stream;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const char letter = static_cast<char>('a' + i % 26);
    sent.push_back({i, std::string(sizes[i].first, letter),
                    std::string(sizes[i].second, static_cast<char>(letter - 'a' + 'A'))});
    stream += ToBytes(sent.back());
  }
  FrameDecoder decoder(transfer);
  Collector collector;
  RC_ASSERT(Feed(decoder, collector, stream, piece).ok());
  RC_ASSERT(collector.frames == sent);
  RC_ASSERT(decoder.AtBoundary());
}

TEST(FrameDecoderTest, WorksByteByByte) {
  const std::vector<Plain> sent = {{1, "ab", "xyz"}, {2, "", ""}, {3, "", "p"}, {4, "b", ""}};
  std::string stream;
  for (const Plain& plain : sent) stream += ToBytes(plain);
  FrameDecoder decoder(1 << 20);
  Collector collector;
  ASSERT_TRUE(Feed(decoder, collector, stream, 1).ok());
  EXPECT_EQ(collector.frames, sent);
  EXPECT_EQ(collector.payloads, 2);
}

TEST(FrameDecoderTest, LargePayloadGoesStraightToItsBuffer) {
  const std::string stream = ToBytes({1, "body", std::string(1 << 20, 'x')});
  FrameDecoder decoder(1 << 20);
  Collector collector;
  ASSERT_TRUE(Feed(decoder, collector, std::string_view(stream).substr(0, 100), 100).ok());
  const auto space = decoder.Space();
  EXPECT_EQ(space[0].data(), collector.given.data + 48);  // 100 = header 48 + body 4 + 48
  EXPECT_EQ(space[0].size(), (1U << 20) - 48);
}

TEST(FrameDecoderTest, BoundaryIsBetweenFramesOnly) {
  const std::string stream = ToBytes({1, "b", "payload"});
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    FrameDecoder decoder(1 << 20);
    Collector collector;
    ASSERT_TRUE(Feed(decoder, collector, std::string_view(stream).substr(0, cut), 1).ok());
    EXPECT_EQ(decoder.AtBoundary(), cut == 0 || cut == stream.size()) << cut;
  }
}

TEST(FrameDecoderTest, BytesThatAreNoFrameAreAnError) {
  FrameDecoder decoder(1 << 20);
  Collector collector;
  const absl::Status status =
      Feed(decoder, collector, ToBytes({1, "", ""}) + std::string(48, 'x'), 1000);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(collector.frames.size(), 1U);
}

TEST(FrameDecoderTest, HandlersErrorsComeOut) {
  for (const bool at_payload : {true, false}) {
    FrameDecoder decoder(1 << 20);
    Collector collector;
    (at_payload ? collector.payload_error : collector.frame_error) =
        absl::ResourceExhaustedError("too large");
    EXPECT_EQ(Feed(decoder, collector, ToBytes({1, "b", "payload"}), 7),
              absl::ResourceExhaustedError("too large"));
  }
}

TEST(FrameDecoderTest, BufferOfAnotherSizeIsAnErrorNotACrash) {
  FrameDecoder decoder(1 << 20);
  Collector collector;
  collector.missing = 1;
  EXPECT_EQ(Feed(decoder, collector, ToBytes({1, "b", "payload"}), 7).code(),
            absl::StatusCode::kInternal);
}

/// Random damage to a good stream: an error or frames, never more than that.
RC_GTEST_PROP(FrameDecoderProperty, DamagedStreamsAreHarmless, ()) {
  std::string stream = ToBytes({1, "body", "payload"}) + ToBytes({2, "", "x"});
  const auto mutations = *rc::gen::container<std::vector<std::pair<std::size_t, char>>>(
      rc::gen::pair(rc::gen::inRange<std::size_t>(0, stream.size()), rc::gen::arbitrary<char>()));
  for (const auto& [offset, value] : mutations) stream[offset] = value;
  FrameDecoder decoder(1 << 20);
  class Careful : public Collector {
   public:
    absl::StatusOr<Buffer> OnPayload(const FrameHeader& header,
                                     std::span<const std::byte> body) override {
      if (header.payload_bytes > 1000) return absl::ResourceExhaustedError("too large");
      return Collector::OnPayload(header, body);
    }
  } collector;
  const absl::Status status = Feed(decoder, collector, stream, 13);
  RC_ASSERT(collector.frames.size() <= 2U || !status.ok());
}

}  // namespace
}  // namespace weir::transport
