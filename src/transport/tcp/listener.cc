#include "transport/tcp/listener.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "transport/tcp/socket_options.h"

namespace weir::transport::tcp {
namespace {

constexpr std::chrono::milliseconds kRetryAfter(100);

}  // namespace

Acceptor::Acceptor(std::shared_ptr<Shared> shared, AcceptCallback on_accept)
    : shared_(std::move(shared)),
      on_accept_(std::move(on_accept)),
      acceptor_(shared_->loops.front()->context()),
      retry_timer_(shared_->loops.front()->context()) {}

absl::Status Acceptor::Listen(const std::string& host, int port) {
  const HostPort asked{host, port};
  const std::string context = absl::StrCat("listen on ", asked.ToString());
  auto endpoints = Resolve(asked);
  if (!endpoints.ok()) return Annotate(endpoints.status(), context);
  {
    MutexLock lock(mutex_);
    std::error_code error;
    for (const asio::ip::tcp::endpoint& endpoint : *endpoints) {
      error = Bind(endpoint);
      if (!error) break;
    }
    if (error) return absl::UnavailableError(absl::StrCat(context, ": ", ErrorText(error)));
    const auto endpoint = acceptor_.local_endpoint(error);
    if (error) return absl::InternalError(absl::StrCat(context, ": ", ErrorText(error)));
    address_ = {endpoint.address().to_string(), endpoint.port()};
  }
  const auto close = [weak = weak_from_this()] {
    if (const std::shared_ptr<Acceptor> self = weak.lock()) self->Close();
  };
  if (!shared_->registry->Add(this, close)) {
    Close();
    return absl::CancelledError("the transport was closed");
  }
  MutexLock lock(mutex_);
  if (!closed_) AcceptNext();
  return absl::OkStatus();
}

std::error_code Acceptor::Bind(const asio::ip::tcp::endpoint& endpoint) {
  std::error_code error;
  std::error_code ignored;
  acceptor_.close(ignored);
  acceptor_.open(endpoint.protocol(), error);
  if (error) return error;
  CloseOnExec(acceptor_.native_handle());
  acceptor_.set_option(asio::ip::tcp::acceptor::reuse_address(true), ignored);
  acceptor_.bind(endpoint, error);
  if (error) return error;
  acceptor_.listen(shared_->options.backlog, error);
  return error;
}

void Acceptor::AcceptNext() {
  const std::shared_ptr<Loop>& loop = shared_->NextLoop();
  acceptor_.async_accept(loop->context(),
                         [self = shared_from_this(), loop](const std::error_code& error,
                                                           asio::ip::tcp::socket socket) {
                           self->OnAccept(loop, error, std::move(socket));
                         });
}

void Acceptor::OnAccept(const std::shared_ptr<Loop>& loop, const std::error_code& error,
                        asio::ip::tcp::socket socket) {
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    if (error && error != asio::error::connection_aborted) return RetryLater();
    AcceptNext();
  }
  if (!error && !Configure(socket, shared_->options)) Deliver(loop, std::move(socket));
}

/// Hands the connection over on its own loop.
void Acceptor::Deliver(const std::shared_ptr<Loop>& loop, asio::ip::tcp::socket socket) {
  auto connection = Connection::New(loop, shared_->registry, std::move(socket), shared_->options);
  loop->Post([self = shared_from_this(), connection = std::move(connection)]() mutable {
    if (!self->IsClosed()) self->on_accept_(std::move(connection));
  });
}

/// Descriptors or memory have run out: trying again at once would only burn the processor.
void Acceptor::RetryLater() {
  retry_timer_.expires_after(kRetryAfter);
  retry_timer_.async_wait([self = shared_from_this()](const std::error_code&) {
    MutexLock lock(self->mutex_);
    if (!self->closed_) self->AcceptNext();
  });
}

void Acceptor::Close() {
  shared_->registry->Remove(this);
  MutexLock lock(mutex_);
  if (std::exchange(closed_, true)) return;
  std::error_code ignored;
  acceptor_.close(ignored);
  retry_timer_.cancel();
}

bool Acceptor::IsClosed() const {
  MutexLock lock(mutex_);
  return closed_;
}

}  // namespace weir::transport::tcp
