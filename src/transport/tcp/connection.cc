#include "transport/tcp/connection.h"

#include <limits.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "transport/sealed_frame.h"
#include "transport/tcp/resolve.h"

namespace weir::transport::tcp {
namespace {

constexpr std::size_t kDroppedBytes = 64 * 1024;

std::string AddressOfPeer(const asio::ip::tcp::socket& socket) {
  std::error_code error;
  const auto endpoint = socket.remote_endpoint(error);
  return error ? "unknown peer" : ToString(endpoint);
}

}  // namespace

std::shared_ptr<Connection> Connection::New(std::shared_ptr<Loop> loop,
                                            std::shared_ptr<Registry> registry,
                                            asio::ip::tcp::socket socket, const Options& options) {
  auto connection =
      std::make_shared<Connection>(std::move(loop), registry, std::move(socket), options);
  const auto close = [weak = connection->weak_from_this()] {
    if (const std::shared_ptr<Connection> self = weak.lock()) {
      self->Close(absl::CancelledError("the transport was closed"));
    }
  };
  if (!registry->Add(connection.get(), close)) close();
  return connection;
}

Connection::Connection(std::shared_ptr<Loop> loop, std::shared_ptr<Registry> registry,
                       asio::ip::tcp::socket socket, const Options& options)
    : loop_(std::move(loop)),
      registry_(std::move(registry)),
      options_(options),
      peer_address_(AddressOfPeer(socket)),
      socket_(std::move(socket)),
      linger_timer_(loop_->context()),
      decoder_(std::in_place, options.transfer_bytes_max) {}

Connection::~Connection() {
  if (state_ != State::kFinished) registry_->Remove(this);
}

// ---- Public methods, on any thread.

void Connection::Start(std::shared_ptr<FrameHandler> handler) {
  WEIR_CHECK(!start_called_.exchange(true));
  loop_->Post([self = shared_from_this(), handler = std::move(handler)]() mutable {
    self->StartFromLoop(std::move(handler));
  });
}

void Connection::Send(Frame frame) {
  SealedFrame sealed = Seal(std::move(frame));
  if (close_requested_) return;
  {
    MutexLock lock(mutex_);
    queue_.Push(std::move(sealed));
    if (std::exchange(flush_posted_, true)) return;
  }
  // On the loop, too: what its current handler sends leaves together.
  if (!loop_->Post([self = shared_from_this()] { self->FlushFromLoop(); })) DropQueue();
}

std::size_t Connection::QueuedBytes() const {
  MutexLock lock(mutex_);
  return queue_.bytes();
}

void Connection::Close(absl::Status reason) {
  if (close_requested_.exchange(true)) return;
  loop_->Post(
      [self = shared_from_this(), reason = std::move(reason)] { self->CloseFromLoop(reason); });
}

// ---- Receiving.

void Connection::StartFromLoop(std::shared_ptr<FrameHandler> handler) {
  if (state_ == State::kFinished) {
    handler->OnClosed(reason_);
    return;
  }
  handler_ = std::move(handler);
  ReadFromLoop();
}

void Connection::ReadFromLoop() {
  if (std::exchange(reading_, true)) return;
  std::array<asio::mutable_buffer, 2> buffers;
  if (state_ == State::kLingering) {
    buffers[0] = asio::buffer(dropped_);
  } else {
    const auto space = decoder_->Space();
    buffers = {asio::buffer(space[0].data(), space[0].size()),
               asio::buffer(space[1].data(), space[1].size())};
  }
  socket_.async_read_some(
      buffers, [self = shared_from_this()](const std::error_code& error, std::size_t bytes) {
        self->OnReadFromLoop(error, bytes);
      });
}

void Connection::OnReadFromLoop(const std::error_code& error, std::size_t bytes) {
  reading_ = false;
  if (state_ == State::kFinished) return;
  if (error) return OnStreamEndFromLoop(error);
  // What a read that began before lingering has brought is dropped as well.
  if (state_ == State::kOpen) {
    decoder_->Filled(bytes);
    if (absl::Status status = DeliverFromLoop(); !status.ok()) return FinishFromLoop(status);
    if (close_requested_) return;  // CloseFromLoop is on its way
  }
  ReadFromLoop();
}

absl::Status Connection::DeliverFromLoop() {
  bool delivered = true;
  while (delivered && !close_requested_) {
    WEIR_ASSIGN_OR_RETURN(delivered, decoder_->DeliverNext(*handler_));
  }
  return absl::OkStatus();
}

void Connection::OnStreamEndFromLoop(const std::error_code& error) {
  if (state_ == State::kLingering) return FinishFromLoop(absl::OkStatus());
  if (!write_error_.ok()) return FinishFromLoop(write_error_);
  if (error != asio::error::eof) return FinishFromLoop(Lost(ErrorText(error)));
  if (!decoder_->AtBoundary()) {
    return FinishFromLoop(Lost("the peer closed it in the middle of a frame"));
  }
  FinishFromLoop(absl::OkStatus());
}

// ---- Sending.

void Connection::FlushFromLoop() {
  {
    MutexLock lock(mutex_);
    flush_posted_ = false;
  }
  if (state_ == State::kFinished || !write_error_.ok()) return DropQueue();
  WriteFromLoop();
}

/// One call of sendmsg: everything queued that fits. Other connections get their turn before the
/// next.
void Connection::WriteFromLoop() {
  std::array<iovec, IOV_MAX> parts;
  msghdr message = {};
  message.msg_iov = parts.data();
  std::size_t gathered = 0;
  {
    MutexLock lock(mutex_);
    message.msg_iovlen = queue_.Gather(options_.transfer_bytes_max, parts);
  }
  for (std::size_t i = 0; i < message.msg_iovlen; ++i) gathered += parts[i].iov_len;
  if (gathered == 0) return ShutDownWhenFlushedFromLoop();
  const ssize_t sent = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
    return OnWriteErrorFromLoop(errno);
  }
  std::vector<SealedFrame> done;
  bool more;
  {
    MutexLock lock(mutex_);
    if (sent > 0) queue_.Consume(static_cast<std::size_t>(sent), done);
    more = !queue_.empty();
    if (more) flush_posted_ = true;
  }
  if (!more) return ShutDownWhenFlushedFromLoop();
  if (sent == static_cast<ssize_t>(gathered)) {
    asio::post(loop_->context(), [self = shared_from_this()] { self->FlushFromLoop(); });
  } else {
    WaitUntilWritableFromLoop();
  }
}

void Connection::WaitUntilWritableFromLoop() {
  socket_.async_wait(asio::ip::tcp::socket::wait_write,
                     [self = shared_from_this()](const std::error_code&) {
                       // An error shows when the write is tried.
                       self->FlushFromLoop();
                     });
}

/// A peer that has gone may have told us why before: what it sent is still to be read. The read
/// ends by itself, because the socket is broken.
void Connection::OnWriteErrorFromLoop(int error) {
  write_error_ = Lost(ErrorText(std::error_code(error, std::generic_category())));
  DropQueue();
  const bool peer_has_gone = error == EPIPE || error == ECONNRESET;
  if (state_ == State::kLingering) return FinishFromLoop(absl::OkStatus());
  if (!peer_has_gone) FinishFromLoop(write_error_);
}

// ---- Closing.

void Connection::CloseFromLoop(const absl::Status& reason) {
  if (state_ != State::kOpen) return;
  if (!reason.ok()) return FinishFromLoop(reason);
  if (!write_error_.ok()) return FinishFromLoop(absl::OkStatus());
  LingerFromLoop();
}

void Connection::LingerFromLoop() {
  state_ = State::kLingering;
  dropped_.resize(kDroppedBytes);
  linger_timer_.expires_after(options_.linger);
  linger_timer_.async_wait([self = shared_from_this()](const std::error_code& error) {
    if (!error) self->FinishFromLoop(absl::OkStatus());
  });
  ShutDownWhenFlushedFromLoop();
  ReadFromLoop();
}

void Connection::ShutDownWhenFlushedFromLoop() {
  if (state_ != State::kLingering || !IsQueueEmpty()) return;
  std::error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

void Connection::FinishFromLoop(const absl::Status& reason) {
  if (state_ == State::kFinished) return;
  state_ = State::kFinished;
  reason_ = reason;
  close_requested_ = true;
  registry_->Remove(this);
  std::error_code ignored;
  linger_timer_.cancel();
  socket_.close(ignored);
  decoder_.reset();
  DropQueue();
  if (handler_ != nullptr) std::exchange(handler_, nullptr)->OnClosed(reason);
}

absl::Status Connection::Lost(const std::string& why) const {
  return absl::UnavailableError(
      absl::StrCat("the connection to ", peer_address_, " was lost: ", why));
}

void Connection::DropQueue() {
  SendQueue dropped;  // destroyed outside the lock
  MutexLock lock(mutex_);
  std::swap(dropped, queue_);
}

bool Connection::IsQueueEmpty() const {
  MutexLock lock(mutex_);
  return queue_.empty();
}

}  // namespace weir::transport::tcp
