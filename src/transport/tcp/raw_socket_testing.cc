#include "transport/tcp/raw_socket_testing.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transport/conformance_testing.h"
#include "transport/sealed_frame.h"

namespace weir::transport::tcp {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

const sockaddr* Generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

RawSocket RawSocket::Connect(int port) {
  RawSocket connected(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = Loopback(port);
  EXPECT_EQ(::connect(connected.descriptor_, Generic(address), sizeof(address)), 0)
      << std::generic_category().message(errno);
  return connected;
}

RawSocket RawSocket::Listen(int backlog) {
  RawSocket listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = Loopback(0);
  EXPECT_EQ(::bind(listening.descriptor_, Generic(address), sizeof(address)), 0);
  EXPECT_EQ(::listen(listening.descriptor_, backlog), 0);
  return listening;
}

RawSocket::~RawSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

RawSocket::RawSocket(RawSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

RawSocket RawSocket::Accept() const {
  const int accepted = ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
  EXPECT_GE(accepted, 0);
  return RawSocket(accepted);
}

int RawSocket::Port() const {
  sockaddr_in address = {};
  socklen_t size = sizeof(address);
  EXPECT_EQ(::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

std::string RawSocket::Address() const {
  return absl::StrCat("127.0.0.1:", Port());
}

void RawSocket::Write(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string RawSocket::Read(std::size_t count) const {
  std::string bytes(count, '\0');
  std::size_t filled = 0;
  while (filled < count) {
    const ssize_t got = ::recv(descriptor_, bytes.data() + filled, count - filled, 0);
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

void RawSocket::Drain() const {
  std::vector<char> bytes(64 * 1024);
  while (::recv(descriptor_, bytes.data(), bytes.size(), 0) > 0) {
  }
}

void RawSocket::ShutDown() const {
  ::shutdown(descriptor_, SHUT_WR);
}

void RawSocket::ResetOnClose() const {
  const linger now = {.l_onoff = 1, .l_linger = 0};
  EXPECT_EQ(::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
}

std::uint32_t RawSocket::DataSegmentsIn() const {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (::getsockopt(descriptor_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return info.tcpi_data_segs_in;
}

std::string FrameBytes(std::uint64_t step, const std::string& body, const std::string& payload) {
  Buffer buffer = NewTestBuffer(payload.size());
  std::copy_n(reinterpret_cast<const std::byte*>(payload.data()), payload.size(), buffer.data);
  const SealedFrame sealed =
      Seal({.header = {.type = FrameType::kTensor, .step = step}, .body = body, .payload = buffer});
  std::string bytes;
  for (const auto part : sealed.Parts()) {
    bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  return bytes;
}

}  // namespace weir::transport::tcp
