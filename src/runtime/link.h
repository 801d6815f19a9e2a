// A data-plane connection between two ends that know who the other is.
//
//   from      on                         to      action
//   greeting  hello or ack that fits     up      OnLinkUp; to who dialled: done(link)
//   greeting  anything else, or too late closed  the peer is told where it can be, OnLinkRefused;
//                                                to who dialled: done(error)
//   up        frames                     up      OnTensor, OnRun, OnDone, OnAbort
//   up        connection closed          closed  OnLinkDown
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/scheduler.h"
#include "rendezvous/value.h"
#include "runtime/identity.h"
#include "runtime/messages.h"
#include "store/ticket_book.h"
#include "tensor/tensor_header.h"
#include "transport/connection.h"

namespace weir::runtime {

class Link;

/// Bytes of whole frames, over all links of a server.
struct Traffic {
  std::atomic<std::uint64_t> bytes_in{0};
  std::atomic<std::uint64_t> bytes_out{0};
};

/// Receives what links bring. Called on the link's loop. A status that is not OK closes the link
/// with it: for frames that no honest peer sends.
class LinkSink {
 public:
  virtual ~LinkSink() = default;
  virtual void OnLinkUp(const std::shared_ptr<Link>& link) = 0;
  /// Where the bytes of a tensor go, before they are read: the place to refuse them.
  virtual absl::StatusOr<Buffer> OnTensorPayload(Link& link, const store::StepId& step,
                                                 std::uint32_t edge,
                                                 const TensorHeader& header) = 0;
  virtual absl::Status OnTensor(Link& link, const store::StepId& step, std::uint32_t edge,
                                Value value) = 0;
  virtual absl::Status OnRun(const std::shared_ptr<Link>& link, const store::StepId& step,
                             const RunMessage& message) = 0;
  virtual absl::Status OnDone(Link& link, const store::StepId& step,
                              const DoneMessage& message) = 0;
  virtual absl::Status OnAbort(Link& link, const store::StepId& step,
                               const absl::Status& reason) = 0;
  /// Exactly once for a link that was up. `reason` is never OK.
  virtual void OnLinkDown(const std::shared_ptr<Link>& link, const absl::Status& reason) = 0;
  /// Somebody at `address` dialled this end and never came up: a refused hello, bytes that are no
  /// frame, or (Unavailable, DeadlineExceeded) nothing at all.
  virtual void OnLinkRefused(const std::string& address, const absl::Status& reason) = 0;
};

/// Thread-safe; kept alive by its connection until that is closed.
class Link final : public transport::FrameHandler, public std::enable_shared_from_this<Link> {
 public:
  using DialDone = std::function<void(absl::StatusOr<std::shared_ptr<Link>>)>;

  struct Context {
    Identity self;
    const ClusterSpec* cluster = nullptr;  // not owned; null for a client
    LinkSink* sink = nullptr;              // not owned, outlives every link
    Scheduler* scheduler = nullptr;        // not owned
    Traffic* traffic = nullptr;            // not owned; null: not counted
  };

  /// Greets the peer behind a connection that this side has dialled. `done` is called once: with
  /// the link when the peer has accepted (after OnLinkUp), or with the refusal.
  static void Greet(std::shared_ptr<transport::Connection> connection, const Context& context,
                    const TaskId& peer, std::uint64_t peer_incarnation, TimePoint deadline,
                    DialDone done);
  /// Waits for the hello of whoever has dialled this side.
  static void Await(std::shared_ptr<transport::Connection> connection, const Context& context,
                    TimePoint deadline);

  /// REQUIRES: up.
  const Identity& peer() const { return peer_; }
  std::string peer_address() const { return connection_->PeerAddress(); }

  /// REQUIRES: CheckCanTravel(value.tensor).
  void SendTensor(const store::StepId& step, std::uint32_t edge, const Value& value);
  void SendRun(const store::StepId& step, const RunMessage& message);
  void SendDone(const store::StepId& step, const DoneMessage& message);
  void SendAbort(const store::StepId& step, const absl::Status& reason);
  /// Sent, and not yet taken by the operating system.
  std::size_t QueuedBytes() const { return connection_->QueuedBytes(); }
  void Close(const absl::Status& reason) { connection_->Close(reason); }

  absl::StatusOr<Buffer> OnPayload(const transport::FrameHeader& header,
                                   std::span<const std::byte> body) override;
  absl::Status OnFrame(const transport::FrameHeader& header, std::span<const std::byte> body,
                       Buffer payload) override;
  void OnClosed(const absl::Status& reason) override;

 private:
  enum class State : std::uint8_t { kGreeting, kUp, kClosed };

  Link(std::shared_ptr<transport::Connection> connection, const Context& context)
      : connection_(std::move(connection)), context_(context) {}
  void StartGreeting(TimePoint deadline);
  absl::Status OnHello(std::span<const std::byte> body);
  absl::Status OnHelloAck(std::span<const std::byte> body);
  absl::Status OnUpFrame(const transport::FrameHeader& header, std::span<const std::byte> body,
                         Buffer payload);
  void SetUp(const Hello& hello);
  void Send(transport::FrameType type, const store::StepId& step, std::uint32_t edge,
            std::string body, Buffer payload = {});
  void FinishDial(absl::StatusOr<std::shared_ptr<Link>> result);

  const std::shared_ptr<transport::Connection> connection_;
  const Context context_;
  bool dialled_ = false;
  TaskId dialled_peer_;
  std::uint64_t dialled_incarnation_ = 0;
  DialDone dial_done_;                     // on the loop only, once started
  State state_ = State::kGreeting;         // on the loop only
  absl::Status refusal_;                   // of the hello that came; on the loop only
  Identity peer_;                          // written once, before OnLinkUp
  std::optional<TensorHeader> incoming_;   // of the payload that is being read; on the loop only
  std::shared_ptr<Timer> greeting_timer_;  // on the loop only, once started
};

}  // namespace weir::runtime
