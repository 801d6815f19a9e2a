#include "multiprocess/stranger.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "runtime/messages.h"
#include "tensor/dtype.h"
#include "tensor/tensor_header.h"
#include "transport/frame.h"

namespace weir::testing_process {
namespace {

using transport::FrameHeader;
using transport::FrameType;

constexpr std::uint64_t kIncarnation = 4711;
constexpr std::uint64_t kFirstQuestion = std::uint64_t{1} << 40;  // steps that nothing else names

int PortOf(const std::string& address) {
  int port = 0;
  WEIR_CHECK(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  return port;
}

std::string RandomBytes(std::mt19937_64& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::string EncodeFrame(FrameHeader header, const std::string& body, const std::string& payload) {
  header.body_bytes = static_cast<std::uint32_t>(body.size());
  header.payload_bytes = payload.size();
  std::array<std::byte, transport::kHeaderBytes> bytes;
  transport::EncodeHeader(header, bytes);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) + body + payload;
}

runtime::Hello SomeHello(std::mt19937_64& random) {
  runtime::Hello hello;
  hello.cluster_id = random() % 2;
  hello.from = {.job = "worker", .index = static_cast<int>(random() % 4)};
  hello.from_incarnation = kIncarnation;
  hello.token = RandomBytes(random, random() % 8);
  if (random() % 2 == 0) hello.status = absl::AbortedError("said a stranger");
  return hello;
}

std::string SomeTensor(std::mt19937_64& random, std::string& payload) {
  constexpr at::ScalarType kTypes[] = {at::kFloat, at::kLong, at::kBool, at::kByte,
                                       at::ScalarType::Undefined};
  TensorHeader header;
  header.dtype = kTypes[random() % std::size(kTypes)];
  header.version = random() % 100;
  if (header.dtype == at::ScalarType::Undefined) return EncodeTensorHeader(header);
  if (random() % 32 == 0) {  // no bytes, and sizes whose product is beyond counting
    header.dims = {0, std::int64_t{1} << (random() % 63), std::int64_t{1} << (random() % 63)};
    std::shuffle(header.dims.begin(), header.dims.end(), random);
    return EncodeTensorHeader(header);
  }
  std::size_t elements = 1;
  for (std::uint64_t rank = random() % 4; rank > 0; --rank) {
    header.dims.push_back(static_cast<std::int64_t>(random() % 5));
    elements *= static_cast<std::size_t>(header.dims.back());
  }
  payload.assign(elements * c10::elementSize(header.dtype), '\1');
  return EncodeTensorHeader(header);
}

std::string SomeBody(FrameType type, std::mt19937_64& random, std::string& payload) {
  switch (type) {
    case FrameType::kHello:
    case FrameType::kHelloAck:
      return runtime::Encode(SomeHello(random));
    case FrameType::kRun:
      return runtime::Encode(
          runtime::RunMessage{.plan = random() % 4,
                              .session = random() % 4,
                              .num_feeds = static_cast<std::uint32_t>(random() % 3),
                              .timeout_ms = random() % 2000});
    case FrameType::kTensor:
      return SomeTensor(random, payload);
    case FrameType::kDone:
      return runtime::Encode(runtime::DoneMessage{
          .status = random() % 2 == 0 ? absl::OkStatus() : absl::InternalError("says a stranger"),
          .ticket = random() % 1000});
    case FrameType::kAbort:
      return runtime::Encode(absl::CancelledError("a stranger has had enough"));
  }
  return "";
}

FrameType SomeType(std::mt19937_64& random) {
  // Mostly what an established connection carries: a hello there ends it.
  const std::uint64_t choice = random() % 100;
  if (choice < 2) return choice == 0 ? FrameType::kHello : FrameType::kHelloAck;
  constexpr FrameType kTypes[] = {FrameType::kRun, FrameType::kTensor, FrameType::kDone,
                                  FrameType::kAbort};
  return kTypes[choice % std::size(kTypes)];
}

FrameHeader SomeHeader(std::mt19937_64& random) {
  return {.type = SomeType(random),
          .flags = 0,
          .epoch = 0,
          .edge = static_cast<std::uint32_t>(random() % 4),
          .origin = random() % 8 == 0 ? random() : kIncarnation,
          .step = random() % 64,
          .body_bytes = 0,
          .payload_bytes = 0};
}

/// RUN of a plan that nobody has: it is refused, with a DONE of its step.
std::string Question(std::uint64_t number) {
  return EncodeFrame({.type = FrameType::kRun,
                      .flags = 0,
                      .epoch = 0,
                      .edge = 0,
                      .origin = kIncarnation,
                      .step = kFirstQuestion + number,
                      .body_bytes = 0,
                      .payload_bytes = 0},
                     runtime::Encode(runtime::RunMessage{
                         .plan = ~0ull, .session = ~0ull, .num_feeds = 0, .timeout_ms = 1000}),
                     "");
}

/// Takes whole frames from the front of `answers` until one answers the question `number`.
bool HoldsAnswer(std::string& answers, std::uint64_t number) {
  while (answers.size() >= transport::kHeaderBytes) {
    std::array<std::byte, transport::kHeaderBytes> bytes;
    std::memcpy(bytes.data(), answers.data(), bytes.size());
    const auto header = transport::DecodeHeader(bytes);
    if (!header.ok()) return false;
    const std::size_t size = bytes.size() + header->body_bytes + header->payload_bytes;
    if (answers.size() < size) return false;
    answers.erase(0, size);
    if (header->type == FrameType::kDone && header->step == kFirstQuestion + number) return true;
  }
  return false;
}

}  // namespace

Stranger::Stranger(const std::string& address, std::string hello)
    : port_(PortOf(address)), hello_(std::move(hello)) {}

Stranger::~Stranger() {
  HangUp();
}

void Stranger::HangUp() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  answers_.clear();
}

bool Stranger::EnsureConnected() {
  if (fd_ >= 0) return true;
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<std::uint16_t>(port_));
  const timeval patience{.tv_sec = 2, .tv_usec = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  // A closed connection leaves nothing behind: there are more of them than ports.
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0) {
    HangUp();
    return false;
  }
  ++connections_;
  return hello_.empty() || Write(hello_);
}

bool Stranger::Write(const std::string& bytes) {
  return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

Stranger::Sight Stranger::Look(int timeout_ms) {
  pollfd state{.fd = fd_, .events = POLLIN, .revents = 0};
  if (::poll(&state, 1, timeout_ms) == 0) return Sight::kNothing;
  char bytes[4096];
  const ssize_t size = ::recv(fd_, bytes, sizeof(bytes), MSG_DONTWAIT);
  if (size <= 0) return Sight::kEnd;
  answers_.append(bytes, static_cast<std::size_t>(size));
  return HoldsAnswer(answers_, question_) ? Sight::kAnswer : Sight::kNothing;
}

bool Stranger::Send(const std::string& frame) {
  if (!EnsureConnected()) return false;
  // A server that has hung up meanwhile is seen below: the frame after the bad one is lost.
  const bool sent = Write(hello_.empty() ? frame : frame + Question(++question_));
  const auto patience = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  Sight sight = sent ? Sight::kNothing : Sight::kEnd;
  while (sight == Sight::kNothing && std::chrono::steady_clock::now() < patience) sight = Look(10);
  if (sight != Sight::kAnswer) HangUp();
  return sight != Sight::kNothing;
}

bool Stranger::Flood(const std::string& bytes) {
  if (EnsureConnected() && Write(bytes)) return true;
  HangUp();
  return false;
}

std::string ClientHello() {
  runtime::Hello hello;
  hello.from_incarnation = kIncarnation;
  return EncodeFrame({.type = FrameType::kHello}, runtime::Encode(hello), "");
}

std::string TaskHello(std::uint64_t cluster_id, const TaskId& from, const TaskId& to) {
  runtime::Hello hello;
  hello.cluster_id = cluster_id;
  hello.from = from;
  hello.from_incarnation = kIncarnation;
  hello.to = to;
  return EncodeFrame({.type = FrameType::kHello}, runtime::Encode(hello), "");
}

std::string RandomFrame(std::mt19937_64& random) {
  if (random() % 2 == 0) return RandomBytes(random, transport::kHeaderBytes + random() % 100);
  FrameHeader header = SomeHeader(random);
  header.flags = static_cast<std::uint16_t>(random());
  header.edge = static_cast<std::uint32_t>(random());
  const std::size_t payload = header.type == FrameType::kTensor ? random() % 64 : 0;
  return EncodeFrame(header, RandomBytes(random, random() % 64), RandomBytes(random, payload));
}

std::string MutatedFrame(std::mt19937_64& random) {
  const FrameHeader header = SomeHeader(random);
  std::string payload;
  const std::string body = SomeBody(header.type, random, payload);
  std::string frame = EncodeFrame(header, body, payload);
  // A wrong length makes the server wait for the rest: true, but slow to test often.
  const bool spare_lengths = random() % 16 != 0;
  for (std::uint64_t flips = random() % 4; flips > 0; --flips) {
    const std::size_t at = random() % frame.size();
    const bool is_length = (at >= 32 && at < 36) || (at >= 40 && at < 48);
    if (!is_length || !spare_lengths) frame[at] ^= static_cast<char>(1u << (random() % 8));
  }
  return frame;
}

}  // namespace weir::testing_process
