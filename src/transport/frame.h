// The data plane's unit: a fixed header, a small body and a payload of raw bytes.
//
// Layout on the wire, little endian, no padding (kHeaderBytes in all), then `body_bytes`, then
// `payload_bytes`; docs/wire_format.md is its specification and frame_test.cc holds golden bytes.
//
//   offset  bytes  field
//        0      4  magic 'W' 'E' 'I' 'R'
//        4      1  protocol version (kProtocolVersion)
//        5      1  type
//        6      2  flags
//        8      4  cluster epoch (0 until membership changes exist)
//       12      4  edge: the plan's number of the tensor's edge; 0 where the type has none
//       16      8  origin: the incarnation of the master that runs the step
//       24      8  step
//       32      4  body_bytes, at most kBodyBytesMax
//       36      4  reserved, 0
//       40      8  payload_bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "base/buffer.h"

namespace weir::transport {

inline constexpr std::uint8_t kProtocolVersion = 1;
inline constexpr std::size_t kHeaderBytes = 48;
inline constexpr std::size_t kBodyBytesMax = 64 * 1024;

enum class FrameType : std::uint8_t {
  kHello = 1,     // body: Hello; first frame of the side that dialled
  kHelloAck = 2,  // body: Hello of the side that accepted, or the refusal
  kRun = 3,       // body: RunMessage; starts a step's partition
  kTensor = 4,    // body: TensorHeader; payload: the tensor's bytes
  kDone = 5,      // body: DoneMessage; a partition has ended, well or not
  kAbort = 6,     // body: status; the step is over, wake everybody who waits in it
};

struct FrameHeader {
  FrameType type = FrameType::kHello;
  std::uint16_t flags = 0;
  std::uint32_t epoch = 0;
  std::uint32_t edge = 0;
  std::uint64_t origin = 0;
  std::uint64_t step = 0;
  std::uint32_t body_bytes = 0;
  std::uint64_t payload_bytes = 0;
};

void EncodeHeader(const FrameHeader& header, std::span<std::byte, kHeaderBytes> out);

/// InvalidArgument for anything that is not a header of this protocol version: wrong magic,
/// version, type, body too large, reserved bits set. `payload_bytes` is not judged here: only the
/// handler knows what it expects.
absl::StatusOr<FrameHeader> DecodeHeader(std::span<const std::byte, kHeaderBytes> in);

/// A whole frame. `payload` is referred to, never copied; it must not be resized while in flight,
/// its bytes may change (a Hogwild read is sent straight from the variable).
struct Frame {
  FrameHeader header;  // body_bytes and payload_bytes are filled in by Connection::Send
  std::string body;
  Buffer payload;
};

}  // namespace weir::transport
