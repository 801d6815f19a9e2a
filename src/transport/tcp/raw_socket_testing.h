// Plain blocking sockets, for tests that play a peer which does not behave.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace weir::transport::tcp {

/// An IPv4 socket on loopback. Closed at the end; every failure fails the test.
class RawSocket {
 public:
  static RawSocket Connect(int port);
  /// `backlog` as of listen(2).
  static RawSocket Listen(int backlog);

  explicit RawSocket(int descriptor) : descriptor_(descriptor) {}
  ~RawSocket();
  RawSocket(RawSocket&& other) noexcept;
  RawSocket& operator=(RawSocket&&) = delete;

  RawSocket Accept() const;
  int Port() const;
  std::string Address() const;

  /// Stops without complaint when the peer has closed.
  void Write(std::string_view bytes) const;
  /// Exactly `count` bytes, or fewer when the stream ends.
  std::string Read(std::size_t count) const;
  /// Reads and drops until the peer closes.
  void Drain() const;
  /// No more is sent.
  void ShutDown() const;
  /// Closing will reset the connection.
  void ResetOnClose() const;
  /// Segments with data that have come in; 0 where the system does not count them.
  std::uint32_t DataSegmentsIn() const;

 private:
  int descriptor_;
};

/// The bytes of a frame, for a peer that writes it itself.
std::string FrameBytes(std::uint64_t step, const std::string& body, const std::string& payload);

}  // namespace weir::transport::tcp
