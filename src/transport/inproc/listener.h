// Who listens at a port of the wire.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "transport/connection.h"
#include "transport/inproc/connection.h"

namespace weir::transport::inproc {

/// The listening itself; a Listener is the user's handle on it. Thread-safe.
class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  Acceptor(std::shared_ptr<Shared> shared, AcceptCallback on_accept)
      : shared_(std::move(shared)), on_accept_(std::move(on_accept)) {}

  absl::Status Bind(int port);

  /// Makes a connection from `dialler`, hands the far end to the callback, returns the near one.
  /// Null when this side is not there any more.
  std::shared_ptr<Connection> Connect(std::shared_ptr<Shared> dialler, int port);

  /// Idempotent.
  void Close();

  int port() const { return port_; }

 private:
  const std::shared_ptr<Shared> shared_;
  const AcceptCallback on_accept_;
  int port_ = 0;  // set once, by Bind
  std::atomic<bool> closed_{false};
};

class Listener final : public transport::Listener {
 public:
  explicit Listener(std::shared_ptr<Acceptor> acceptor) : acceptor_(std::move(acceptor)) {}
  ~Listener() override { Close(); }

  std::string Address() const override { return AddressOf(acceptor_->port()); }
  int Port() const override { return acceptor_->port(); }
  void Close() override { acceptor_->Close(); }

 private:
  const std::shared_ptr<Acceptor> acceptor_;
};

}  // namespace weir::transport::inproc
