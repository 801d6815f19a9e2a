// Frames over TCP.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "base/scheduler.h"
#include "transport/connection.h"

namespace weir::transport::tcp {

struct Options {
  /// Loops, one thread each; connections are dealt to them in turn. A second one pays only where
  /// one connection alone fills a core.
  int io_threads = 1;
  /// How long an idle loop polls, giving its processor away each time, before it sleeps. Waking an
  /// idle core costs some 20 µs each way, which dominates small steps. 0 sleeps at once.
  Duration poll_before_sleep = std::chrono::microseconds(50);
  /// For how long Close(OK) may flush what is queued and wait for the peer to close its side.
  Duration linger = std::chrono::seconds(1);
  /// Bytes asked of the operating system in one call. Below 64 KB large tensors become slower.
  std::size_t transfer_bytes_max = std::size_t{1} << 20;
  /// The kernel's buffer for what each connection sends; 0 leaves it to the kernel, which sizes it
  /// itself and does it well. A small one makes partial writes, for tests.
  int send_buffer_bytes = 0;
  /// Connections that may wait to be accepted.
  int backlog = 1024;
};

/// Addresses are "host:port"; a host is an address or a name, IPv6 addresses are in brackets.
std::unique_ptr<Transport> NewTransport(const Options& options);

}  // namespace weir::transport::tcp
