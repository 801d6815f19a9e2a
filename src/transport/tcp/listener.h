// A listening TCP socket.
#pragma once

#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "cluster/host_port.h"
#include "transport/connection.h"
#include "transport/tcp/connection.h"
#include "transport/tcp/resolve.h"
#include "transport/tcp/shared.h"

namespace weir::transport::tcp {

/// The listening itself, kept alive by its pending accept; a Listener is the user's handle on it.
/// The socket is used under a lock, not on the loop alone, because Close() takes effect at once.
class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  Acceptor(std::shared_ptr<Shared> shared, AcceptCallback on_accept);

  /// Binds to the first of the host's addresses that works, and begins to accept.
  absl::Status Listen(const std::string& host, int port);

  /// Idempotent.
  void Close();

  const HostPort& address() const { return address_; }

 private:
  std::error_code Bind(const asio::ip::tcp::endpoint& endpoint) WEIR_REQUIRES(mutex_);
  void AcceptNext() WEIR_REQUIRES(mutex_);
  void OnAccept(const std::shared_ptr<Loop>& loop, const std::error_code& error,
                asio::ip::tcp::socket socket);
  void Deliver(const std::shared_ptr<Loop>& loop, asio::ip::tcp::socket socket);
  void RetryLater() WEIR_REQUIRES(mutex_);
  bool IsClosed() const;

  const std::shared_ptr<Shared> shared_;
  const AcceptCallback on_accept_;
  HostPort address_;  // set once, by Listen
  mutable Mutex mutex_;
  bool closed_ WEIR_GUARDED_BY(mutex_) = false;
  asio::ip::tcp::acceptor acceptor_ WEIR_GUARDED_BY(mutex_);
  asio::steady_timer retry_timer_ WEIR_GUARDED_BY(mutex_);
};

class Listener final : public transport::Listener {
 public:
  explicit Listener(std::shared_ptr<Acceptor> acceptor) : acceptor_(std::move(acceptor)) {}
  ~Listener() override { Close(); }

  std::string Address() const override { return acceptor_->address().ToString(); }
  int Port() const override { return acceptor_->address().port; }
  void Close() override { acceptor_->Close(); }

 private:
  const std::shared_ptr<Acceptor> acceptor_;
};

}  // namespace weir::transport::tcp
