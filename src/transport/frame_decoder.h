// Turns a stream of bytes into calls of a FrameHandler: the receiving half of every transport.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/connection.h"
#include "transport/frame.h"

namespace weir::transport {

/// The caller reads into Space(), says with Filled() how much came, and then asks for frames until
/// there are none:
///
///   const std::size_t bytes = read(decoder.Space());
///   decoder.Filled(bytes);
///   while (true) {
///     WEIR_ASSIGN_OR_RETURN(const bool delivered, decoder.DeliverNext(handler));
///     if (!delivered) break;
///   }
///
/// Small frames share one staging buffer, so that many cost one system call. A payload's bytes go
/// to the handler's buffer directly, except for those that came together with its header.
/// Not thread-safe. After an error the stream is broken: no more calls.
class FrameDecoder {
 public:
  /// At most `transfer_bytes_max` bytes are asked for at a time.
  explicit FrameDecoder(std::size_t transfer_bytes_max);

  /// Where the next bytes go, in this order; the first span is empty unless a payload is expected.
  /// Together never empty. Valid until the next call.
  std::array<std::span<std::byte>, 2> Space();

  /// The first `bytes` bytes of the last Space() hold data now.
  void Filled(std::size_t bytes);

  /// Calls `handler` for at most one frame: true when OnFrame was called, false when more bytes
  /// are needed first. InvalidArgument for bytes that are no frame, or the handler's error.
  absl::StatusOr<bool> DeliverNext(FrameHandler& handler);

  /// True when the stream may end here.
  bool AtBoundary() const { return begin_ == end_; }

 private:
  struct Current {
    FrameHeader header;
    std::size_t staged = 0;  // bytes of the frame that are in staging_, once in_payload
    bool in_payload = false;
    Buffer payload;
    std::size_t payload_filled = 0;
  };

  std::size_t StagedBytes() const { return end_ - begin_; }
  std::span<const std::byte> Body() const;
  void MakeRoom();
  absl::Status BeginPayload(FrameHandler& handler);
  absl::Status Deliver(FrameHandler& handler);

  const std::size_t transfer_bytes_max_;
  const std::unique_ptr<std::byte[]> staging_;
  std::size_t begin_ = 0;  // of what is in staging_ and not delivered: a frame's first byte
  std::size_t end_ = 0;
  std::optional<Current> current_;  // once its header is known
};

}  // namespace weir::transport
