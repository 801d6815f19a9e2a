// One end of an in-process connection. See network.h for what users see.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/gate.h"
#include "base/mutex.h"
#include "base/strand.h"
#include "transport/connection.h"
#include "transport/frame_decoder.h"
#include "transport/inproc/wire.h"
#include "transport/registry.h"
#include "transport/sealed_frame.h"

namespace weir::transport::inproc {

/// What the parts of one transport share. Outlives the transport for as long as they live.
struct Shared {
  std::shared_ptr<Wire> wire;
  Registry registry;
  /// Holds started connections that are not closed, dials and accepts under way. Join closes it
  /// while callbacks may still start, close or dial: they get in until it is empty.
  Gate callbacks;
};

/// Sending puts a frame in the peer's inbox at once; the peer takes it out, on its strand, when its
/// time has come. A started connection keeps itself alive until it is closed.
///
/// Methods that end in FromStrand run on the strand, which is the connection's loop.
class Connection final : public transport::Connection,
                         public std::enable_shared_from_this<Connection> {
 public:
  /// Two ends of one connection. `dialler` and `acceptor` are their transports.
  static std::pair<std::shared_ptr<Connection>, std::shared_ptr<Connection>> NewPair(
      std::shared_ptr<Shared> dialler, std::shared_ptr<Shared> acceptor, int port);

  Connection(std::shared_ptr<Shared> shared, std::string peer_address);
  ~Connection() override;

  void Start(std::shared_ptr<FrameHandler> handler) override;
  void Send(Frame frame) override;
  std::size_t QueuedBytes() const override;
  void Close(absl::Status reason) override;
  std::string PeerAddress() const override { return peer_address_; }

  /// The wire breaks: both ends are closed with Unavailable, what travels is lost.
  void Lose();

  Strand& strand() { return strand_; }

 private:
  /// Something on its way to this end: some of a frame's bytes, or the end of the stream.
  struct Delivery {
    enum class Kind { kBytes, kEnd, kLost };
    Kind kind = Kind::kBytes;
    std::shared_ptr<const SealedFrame> frame;
    std::size_t begin = 0;
    std::size_t end = 0;
    TimePoint due = {};

    std::size_t size() const { return end - begin; }
  };

  std::vector<Delivery> Deliveries(std::shared_ptr<const SealedFrame> frame, Fate fate);
  void Arrive(std::vector<Delivery> deliveries);
  void DropInbox();
  void PostDelivery(TimePoint due);
  void Enter(Shared& shared);

  void StartFromStrand(std::shared_ptr<FrameHandler> handler);
  void DeliverFromStrand();
  std::optional<Delivery> TakeDueFromStrand();
  absl::Status DecodeFromStrand(const Delivery& delivery);
  absl::Status ReceiveFromStrand(std::span<const std::byte> bytes);
  void EndFromStrand(Delivery::Kind kind);
  void FinishFromStrand(const absl::Status& reason, Delivery::Kind news);

  absl::Status LostStatus() const;
  bool IsCloseRequested() const;

  const std::shared_ptr<Shared> shared_;
  const std::string peer_address_;
  Strand strand_;
  std::weak_ptr<Connection> peer_;  // set once, by NewPair

  mutable Mutex mutex_;
  bool start_called_ WEIR_GUARDED_BY(mutex_) = false;
  bool close_requested_ WEIR_GUARDED_BY(mutex_) = false;
  bool sending_is_lost_ WEIR_GUARDED_BY(mutex_) = false;  // a fault lost it, the news is travelling
  std::deque<Delivery> inbox_ WEIR_GUARDED_BY(mutex_);
  std::size_t inbox_bytes_ WEIR_GUARDED_BY(mutex_) = 0;
  TimePoint last_due_ WEIR_GUARDED_BY(mutex_) = {};

  // Strand only.
  std::optional<FrameDecoder> decoder_;  // until finished
  std::shared_ptr<FrameHandler> handler_;
  std::shared_ptr<Connection> self_;  // while started and not closed
  bool finished_ = false;
  absl::Status reason_;  // once finished
};

}  // namespace weir::transport::inproc
