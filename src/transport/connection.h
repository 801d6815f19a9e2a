// What every transport offers: ordered, reliable frames between two ends.
//
// Each connection belongs to one loop (a thread of its transport). Public methods may be called
// from any thread and never block; handler methods are called on the loop, one at a time, never
// from inside a public method of the same connection.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/buffer.h"
#include "base/scheduler.h"
#include "transport/frame.h"

namespace weir::transport {

/// Receives what a connection brings. Not owned by the connection beyond OnClosed: it is kept by
/// shared_ptr until then and released right after.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;

  /// Header and body of a frame whose payload is not empty have arrived: says where the payload
  /// goes. The buffer's size must equal header.payload_bytes. This is the place to refuse a size
  /// before it is allocated: an error closes the connection with that status.
  virtual absl::StatusOr<Buffer> OnPayload(const FrameHeader& header,
                                           std::span<const std::byte> body) = 0;

  /// A whole frame has arrived. An error closes the connection with that status.
  virtual absl::Status OnFrame(const FrameHeader& header, std::span<const std::byte> body,
                               Buffer payload) = 0;

  /// Called exactly once, last. OK when this side called Close() with OK or the peer closed between
  /// two frames; else the reason: Unavailable when the peer has gone, InvalidArgument for bytes
  /// that are no frame.
  virtual void OnClosed(const absl::Status& reason) = 0;
};

class Connection {
 public:
  virtual ~Connection() = default;

  /// Begins to deliver frames to `handler`. Called at most once; what arrives before waits in the
  /// transport. From then on the connection lives until it is closed, whoever holds it; one that
  /// is never started is closed when its last holder lets go. REQUIRES: the transport has not been
  /// joined (its loops are needed to call the handler; afterwards the handler is just released).
  virtual void Start(std::shared_ptr<FrameHandler> handler) = 0;

  /// Queues `frame`. Frames leave in the order of the calls; those queued while the loop is busy
  /// leave together in one gathered write, and what a handler sends leaves after it has returned.
  /// May be called before Start(). Dropped silently once the connection is closed: OnClosed tells.
  virtual void Send(Frame frame) = 0;

  /// Bytes queued and not yet handed to the operating system (to the peer, where there is none in
  /// between).
  virtual std::size_t QueuedBytes() const = 0;

  /// Closes both directions: nothing that arrives is delivered any more. Queued frames are flushed
  /// when `reason` is OK, for at most the transport's linger time, and dropped otherwise.
  /// Idempotent; the first reason counts.
  virtual void Close(absl::Status reason) = 0;

  /// "127.0.0.1:4711", for messages.
  virtual std::string PeerAddress() const = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;
  /// host:port that peers may dial; with the real port when 0 was asked for. IPv6 hosts in
  /// brackets.
  virtual std::string Address() const = 0;
  virtual int Port() const = 0;
  /// No more connections are accepted after this returns, and the port is free; accepted ones live
  /// on. A call of the accept callback that has begun may still be running. Idempotent; the
  /// destructor does the same.
  virtual void Close() = 0;
};

using AcceptCallback = std::function<void(std::shared_ptr<Connection>)>;
using DialCallback = std::function<void(absl::StatusOr<std::shared_ptr<Connection>>)>;

/// A kind of connection. Owns its loops. Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Listens on `host`:`port` (0: any). Unavailable with address and errno text when the port is
  /// taken. `on_accept` is called on a loop for each connection; it must Start() or drop it.
  virtual absl::StatusOr<std::unique_ptr<Listener>> Listen(const std::string& host, int port,
                                                           AcceptCallback on_accept) = 0;
  /// Connects to `address` ("host:port"). `done` is called exactly once, on a loop: with the
  /// connection, or Unavailable (refused, unreachable, unknown host), DeadlineExceeded,
  /// InvalidArgument (no address) or Cancelled (the transport was closed). REQUIRES: the transport
  /// has not been joined.
  virtual void Dial(const std::string& address, TimePoint deadline, DialCallback done) = 0;
  /// Closes listeners, connections and dials (Cancelled); what is begun from now on is cancelled at
  /// once. Never blocks. A connection that is flushing after Close(OK) keeps its linger time.
  virtual void Close() = 0;
  /// Waits until every handler has had its OnClosed and the loops have ended. REQUIRES: Close() was
  /// called, and the caller is not on a loop. The destructor does both.
  virtual void Join() = 0;
};

}  // namespace weir::transport
