#include "transport/frame_decoder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weir::transport {
namespace {

// A header and the largest body stay in staging while their payload arrives, and behind them there
// is still room for a read.
constexpr std::size_t kReadBytes = 64 * 1024;
constexpr std::size_t kStagingBytes = kHeaderBytes + kBodyBytesMax + kReadBytes;

}  // namespace

FrameDecoder::FrameDecoder(std::size_t transfer_bytes_max)
    : transfer_bytes_max_(std::max<std::size_t>(transfer_bytes_max, 1)),
      staging_(std::make_unique_for_overwrite<std::byte[]>(kStagingBytes)) {}

std::array<std::span<std::byte>, 2> FrameDecoder::Space() {
  MakeRoom();
  std::size_t allowed = transfer_bytes_max_;
  std::span<std::byte> payload;
  if (current_ && current_->in_payload) {
    payload =
        std::span(current_->payload.data, current_->payload.size).subspan(current_->payload_filled);
    payload = payload.first(std::min(payload.size(), allowed));
    allowed -= payload.size();
  }
  const std::size_t staging = std::min({kReadBytes, kStagingBytes - end_, allowed});
  return {payload, std::span(staging_.get() + end_, staging)};
}

void FrameDecoder::Filled(std::size_t bytes) {
  if (current_ && current_->in_payload) {
    const std::size_t taken = std::min(bytes, current_->payload.size - current_->payload_filled);
    current_->payload_filled += taken;
    bytes -= taken;
  }
  end_ += bytes;
}

/// Moves what is left to the front when a full read would not fit behind it.
void FrameDecoder::MakeRoom() {
  if (begin_ == end_) {
    begin_ = end_ = 0;
  } else if (kStagingBytes - end_ < kReadBytes) {
    std::memmove(staging_.get(), staging_.get() + begin_, StagedBytes());
    end_ -= begin_;
    begin_ = 0;
  }
}

std::span<const std::byte> FrameDecoder::Body() const {
  return {staging_.get() + begin_ + kHeaderBytes, current_->header.body_bytes};
}

absl::StatusOr<bool> FrameDecoder::DeliverNext(FrameHandler& handler) {
  if (!current_) {
    if (StagedBytes() < kHeaderBytes) return false;
    const std::span<const std::byte, kHeaderBytes> header(staging_.get() + begin_, kHeaderBytes);
    WEIR_ASSIGN_OR_RETURN(const FrameHeader decoded, DecodeHeader(header));
    current_.emplace(Current{.header = decoded, .payload = {}});
  }
  if (!current_->in_payload) {
    if (StagedBytes() < kHeaderBytes + current_->header.body_bytes) return false;
    WEIR_RETURN_IF_ERROR(BeginPayload(handler));
  }
  if (current_->payload_filled < current_->payload.size) return false;
  WEIR_RETURN_IF_ERROR(Deliver(handler));
  return true;
}

/// Header and body are complete: gets the payload's buffer and gives it the bytes that have come.
absl::Status FrameDecoder::BeginPayload(FrameHandler& handler) {
  Current& current = *current_;
  current.staged = kHeaderBytes + current.header.body_bytes;
  current.in_payload = true;
  if (current.header.payload_bytes == 0) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(current.payload, handler.OnPayload(current.header, Body()));
  if (current.payload.size != current.header.payload_bytes) {
    return absl::InternalError(absl::StrCat("a buffer of ", current.payload.size,
                                            " bytes was given for a payload of ",
                                            current.header.payload_bytes));
  }
  const std::size_t came = std::min(StagedBytes() - current.staged, current.payload.size);
  std::memcpy(current.payload.data, staging_.get() + begin_ + current.staged, came);
  current.payload_filled = came;
  if (came == current.payload.size) {
    current.staged += came;
  } else {
    end_ -= came;  // all that was behind the body
  }
  return absl::OkStatus();
}

absl::Status FrameDecoder::Deliver(FrameHandler& handler) {
  absl::Status status = handler.OnFrame(current_->header, Body(), std::move(current_->payload));
  begin_ += current_->staged;
  current_.reset();
  return status;
}

}  // namespace weir::transport
