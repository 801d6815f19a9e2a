#include "transport/inproc/listener.h"

#include "base/status.h"

namespace weir::transport::inproc {

absl::Status Acceptor::Bind(int port) {
  WEIR_ASSIGN_OR_RETURN(port_, shared_->wire->Bind(port, shared_from_this()));
  const auto close = [weak = weak_from_this()] {
    if (const std::shared_ptr<Acceptor> self = weak.lock()) self->Close();
  };
  if (shared_->registry.Add(this, close)) return absl::OkStatus();
  Close();
  return absl::CancelledError("the transport was closed");
}

std::shared_ptr<Connection> Acceptor::Connect(std::shared_ptr<Shared> dialler, int port) {
  if (closed_ || !shared_->callbacks.Enter()) return nullptr;
  auto ends = Connection::NewPair(std::move(dialler), shared_, port);
  Strand& strand = ends.second->strand();
  strand.Post([self = shared_from_this(), far = std::move(ends.second)]() mutable {
    if (!self->closed_) self->on_accept_(std::move(far));
    far.reset();
    self->shared_->callbacks.Leave();
  });
  return std::move(ends.first);
}

void Acceptor::Close() {
  if (closed_.exchange(true)) return;
  shared_->registry.Remove(this);
  shared_->wire->Unbind(port_);
}

}  // namespace weir::transport::inproc
