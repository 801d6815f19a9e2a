#include "transport/sealed_frame.h"

#include <utility>

#include "base/status.h"

namespace weir::transport {

std::array<std::span<const std::byte>, 3> SealedFrame::Parts() const {
  return {std::span<const std::byte>(header), std::as_bytes(std::span(body)),
          std::span<const std::byte>(payload.data, payload.size)};
}

SealedFrame Seal(Frame frame) {
  WEIR_CHECK(frame.body.size() <= kBodyBytesMax);
  frame.header.body_bytes = static_cast<std::uint32_t>(frame.body.size());
  frame.header.payload_bytes = frame.payload.size;
  SealedFrame sealed{
      .header = {}, .body = std::move(frame.body), .payload = std::move(frame.payload)};
  EncodeHeader(frame.header, sealed.header);
  return sealed;
}

}  // namespace weir::transport
