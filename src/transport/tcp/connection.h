// One TCP connection. See transport/connection.h for what it promises.
#pragma once

#include <array>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/mutex.h"
#include "transport/connection.h"
#include "transport/frame_decoder.h"
#include "transport/registry.h"
#include "transport/tcp/loop.h"
#include "transport/tcp/send_queue.h"
#include "transport/tcp/transport.h"

namespace weir::transport::tcp {

/// Belongs to one loop: public methods put a frame or a wish down and post, methods that end in
/// FromLoop do the work. A started connection is kept alive by its pending read until it is
/// finished; an unstarted one lives as long as somebody holds it.
///
///   state      until                          reads
///   open       Close() or the first error     frames, once started
///   lingering  Close(OK); the peer closes     and drops: closing with bytes unread would reset
///              too, or the linger time ends   the connection and lose what we have just sent
///   finished   for ever                       nothing; the socket is closed, OnClosed was called
class Connection final : public transport::Connection,
                         public std::enable_shared_from_this<Connection> {
 public:
  /// A connected socket of `loop`, set up by Configure(). Registers with `registry`, closes itself
  /// when that is closed.
  static std::shared_ptr<Connection> New(std::shared_ptr<Loop> loop,
                                         std::shared_ptr<Registry> registry,
                                         asio::ip::tcp::socket socket, const Options& options);

  /// Use New().
  Connection(std::shared_ptr<Loop> loop, std::shared_ptr<Registry> registry,
             asio::ip::tcp::socket socket, const Options& options);
  ~Connection() override;

  void Start(std::shared_ptr<FrameHandler> handler) override;
  void Send(Frame frame) override;
  std::size_t QueuedBytes() const override;
  void Close(absl::Status reason) override;
  std::string PeerAddress() const override { return peer_address_; }

 private:
  enum class State { kOpen, kLingering, kFinished };

  void StartFromLoop(std::shared_ptr<FrameHandler> handler);
  void ReadFromLoop();
  void OnReadFromLoop(const std::error_code& error, std::size_t bytes);
  absl::Status DeliverFromLoop();
  void OnStreamEndFromLoop(const std::error_code& error);

  void FlushFromLoop();
  void WriteFromLoop();
  void WaitUntilWritableFromLoop();
  void OnWriteErrorFromLoop(int error);

  void CloseFromLoop(const absl::Status& reason);
  void LingerFromLoop();
  void ShutDownWhenFlushedFromLoop();
  void FinishFromLoop(const absl::Status& reason);

  absl::Status Lost(const std::string& why) const;
  bool IsQueueEmpty() const;
  void DropQueue();

  const std::shared_ptr<Loop> loop_;
  const std::shared_ptr<Registry> registry_;
  const Options options_;
  const std::string peer_address_;
  std::atomic<bool> close_requested_{false};
  std::atomic<bool> start_called_{false};

  mutable Mutex mutex_;
  SendQueue queue_ WEIR_GUARDED_BY(mutex_);
  bool flush_posted_ WEIR_GUARDED_BY(mutex_) = false;  // or a flush waits for the socket

  // Loop only, once New() has returned.
  asio::ip::tcp::socket socket_;
  asio::steady_timer linger_timer_;
  State state_ = State::kOpen;
  std::shared_ptr<FrameHandler> handler_;
  std::optional<FrameDecoder> decoder_;  // while open
  std::vector<std::byte> dropped_;       // what is read while lingering
  bool reading_ = false;
  absl::Status write_error_;
  absl::Status reason_;  // once finished
};

}  // namespace weir::transport::tcp
