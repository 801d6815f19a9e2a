#include "transport/tcp/send_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

#include "transport/conformance_testing.h"

namespace weir::transport::tcp {
namespace {

SealedFrame NewFrame(std::uint64_t step, std::size_t body, std::size_t payload) {
  return Seal({.header = {.type = FrameType::kTensor, .step = step},
               .body = std::string(body, static_cast<char>('a' + step % 26)),
               .payload = NewPatternBuffer(payload, step)});
}

std::string Bytes(const SealedFrame& frame) {
  std::string bytes;
  for (const auto part : frame.Parts()) {
    bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  return bytes;
}

/// However the system takes what it is offered, the stream is that of the frames.
RC_GTEST_PROP(SendQueueProperty, PartialWritesKeepTheStream, ()) {
  const auto sizes =
      *rc::gen::container<std::vector<std::pair<std::size_t, std::size_t>>>(rc::gen::pair(
          rc::gen::element<std::size_t>(0, 1, 100), rc::gen::element<std::size_t>(0, 1, 500)));
  SendQueue queue;
  std::string expected;
  std::string sent;
  std::size_t done_count = 0;
  std::vector<iovec> parts(*rc::gen::inRange<std::size_t>(1, 10));
  const auto write_once = [&](bool whole) {
    const std::size_t used = queue.Gather(*rc::gen::inRange<std::size_t>(1, 1000), parts);
    RC_ASSERT((used == 0) == queue.empty());
    std::string offered;
    for (std::size_t i = 0; i < used; ++i) {
      RC_ASSERT(parts[i].iov_len > 0U);
      offered.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
    }
    const std::size_t taken =
        whole ? offered.size() : *rc::gen::inRange<std::size_t>(0, offered.size() + 1);
    sent += offered.substr(0, taken);
    std::vector<SealedFrame> done;
    queue.Consume(taken, done);
    done_count += done.size();
    RC_ASSERT(queue.bytes() == expected.size() - sent.size());
  };
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    SealedFrame frame = NewFrame(i, sizes[i].first, sizes[i].second);
    expected += Bytes(frame);
    queue.Push(std::move(frame));
    write_once(false);
  }
  while (!queue.empty()) write_once(true);
  RC_ASSERT(sent == expected);
  RC_ASSERT(done_count == sizes.size());
  RC_ASSERT(queue.bytes() == 0U);
}

TEST(SendQueueTest, WhatIsGatheredStaysWhileFramesArePushed) {
  SendQueue queue;
  queue.Push(NewFrame(1, 10, 100));
  std::vector<iovec> parts(3);
  ASSERT_EQ(queue.Gather(1 << 20, parts), 3U);
  const std::string before(static_cast<const char*>(parts[1].iov_base), parts[1].iov_len);
  for (std::uint64_t step = 2; step < 1000; ++step) queue.Push(NewFrame(step, 0, 0));
  EXPECT_EQ(std::string(static_cast<const char*>(parts[1].iov_base), parts[1].iov_len), before);
}

TEST(SendQueueTest, GathersAcrossFrames) {
  SendQueue queue;
  for (std::uint64_t step = 0; step < 5; ++step) queue.Push(NewFrame(step, 3, 0));
  std::vector<iovec> parts(100);
  EXPECT_EQ(queue.Gather(1 << 20, parts), 10U);  // header and body of each
}

}  // namespace
}  // namespace weir::transport::tcp
