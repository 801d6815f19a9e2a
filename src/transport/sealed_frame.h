// A frame as it leaves: what all transports send.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "transport/frame.h"

namespace weir::transport {

/// Header encoded, body and payload as they were given.
struct SealedFrame {
  std::array<std::byte, kHeaderBytes> header;
  std::string body;
  Buffer payload;

  std::size_t size() const { return kHeaderBytes + body.size() + payload.size; }

  /// Header, body, payload, in the order of the wire; the last two may be empty.
  std::array<std::span<const std::byte>, 3> Parts() const;
};

/// Fills in the sizes and encodes the header. A body above kBodyBytesMax ends the process: what is
/// that large is a payload.
SealedFrame Seal(Frame frame);

}  // namespace weir::transport
