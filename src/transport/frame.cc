#include "transport/frame.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weir::transport {
namespace {

static_assert(std::endian::native == std::endian::little, "fields are copied as they are");

constexpr std::array<std::byte, 4> kMagic = {std::byte{'W'}, std::byte{'E'}, std::byte{'I'},
                                             std::byte{'R'}};

// Offsets of the table in frame.h.
constexpr std::size_t kVersionAt = 4;
constexpr std::size_t kTypeAt = 5;
constexpr std::size_t kFlagsAt = 6;
constexpr std::size_t kEpochAt = 8;
constexpr std::size_t kEdgeAt = 12;
constexpr std::size_t kOriginAt = 16;
constexpr std::size_t kStepAt = 24;
constexpr std::size_t kBodyBytesAt = 32;
constexpr std::size_t kReservedAt = 36;
constexpr std::size_t kPayloadBytesAt = 40;

template <typename T>
void Put(std::span<std::byte, kHeaderBytes> out, std::size_t offset, T value) {
  std::memcpy(out.data() + offset, &value, sizeof(value));
}

template <typename T>
T Get(std::span<const std::byte, kHeaderBytes> in, std::size_t offset) {
  T value;
  std::memcpy(&value, in.data() + offset, sizeof(value));
  return value;
}

bool IsFrameType(std::uint8_t type) {
  return type >= static_cast<std::uint8_t>(FrameType::kHello) &&
         type <= static_cast<std::uint8_t>(FrameType::kAbort);
}

absl::Status CheckHeader(std::span<const std::byte, kHeaderBytes> in) {
  if (!std::equal(kMagic.begin(), kMagic.end(), in.begin())) {
    return absl::InvalidArgumentError(
        "these bytes are no frame: they do not begin with 'WEIR' (is the peer another program?)");
  }
  if (const int version = Get<std::uint8_t>(in, kVersionAt); version != kProtocolVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("the peer speaks protocol version ", version, ", this side version ",
                     int{kProtocolVersion}, ": all tasks of a cluster must run the same release"));
  }
  if (const auto type = Get<std::uint8_t>(in, kTypeAt); !IsFrameType(type)) {
    return absl::InvalidArgumentError(absl::StrCat("unknown frame type ", int{type}));
  }
  if (const auto bytes = Get<std::uint32_t>(in, kBodyBytesAt); bytes > kBodyBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("frame body of ", bytes, " bytes, at most ", kBodyBytesMax, " are allowed"));
  }
  if (Get<std::uint32_t>(in, kReservedAt) != 0) {
    return absl::InvalidArgumentError("reserved bits of the frame header are set");
  }
  return absl::OkStatus();
}

}  // namespace

void EncodeHeader(const FrameHeader& header, std::span<std::byte, kHeaderBytes> out) {
  std::copy(kMagic.begin(), kMagic.end(), out.begin());
  Put(out, kVersionAt, kProtocolVersion);
  Put(out, kTypeAt, header.type);
  Put(out, kFlagsAt, header.flags);
  Put(out, kEpochAt, header.epoch);
  Put(out, kEdgeAt, header.edge);
  Put(out, kOriginAt, header.origin);
  Put(out, kStepAt, header.step);
  Put(out, kBodyBytesAt, header.body_bytes);
  Put(out, kReservedAt, std::uint32_t{0});
  Put(out, kPayloadBytesAt, header.payload_bytes);
}

absl::StatusOr<FrameHeader> DecodeHeader(std::span<const std::byte, kHeaderBytes> in) {
  if (absl::Status status = CheckHeader(in); !status.ok()) return status;
  return FrameHeader{
      .type = Get<FrameType>(in, kTypeAt),
      .flags = Get<std::uint16_t>(in, kFlagsAt),
      .epoch = Get<std::uint32_t>(in, kEpochAt),
      .edge = Get<std::uint32_t>(in, kEdgeAt),
      .origin = Get<std::uint64_t>(in, kOriginAt),
      .step = Get<std::uint64_t>(in, kStepAt),
      .body_bytes = Get<std::uint32_t>(in, kBodyBytesAt),
      .payload_bytes = Get<std::uint64_t>(in, kPayloadBytesAt),
  };
}

}  // namespace weir::transport
