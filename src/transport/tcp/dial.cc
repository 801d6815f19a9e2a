#include "transport/tcp/dial.h"

#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cluster/host_port.h"
#include "transport/tcp/connection.h"
#include "transport/tcp/resolve.h"
#include "transport/tcp/socket_options.h"

namespace weir::transport::tcp {
namespace {

/// All but Start() runs on the loop.
class DialOperation : public std::enable_shared_from_this<DialOperation> {
 public:
  DialOperation(std::shared_ptr<Shared> shared, std::string address, DialCallback done)
      : shared_(std::move(shared)),
        loop_(shared_->NextLoop()),
        address_(std::move(address)),
        done_(std::move(done)),
        socket_(loop_->context()),
        deadline_timer_(loop_->context()) {}

  void Start(TimePoint deadline) {
    loop_->Post([self = shared_from_this(), deadline] { self->Begin(deadline); });
  }

 private:
  void Begin(TimePoint deadline) {
    if (deadline <= std::chrono::steady_clock::now()) return Fail(TimedOut());
    const auto cancel = [weak = weak_from_this()] {
      const std::shared_ptr<DialOperation> self = weak.lock();
      if (self != nullptr) self->loop_->Post([self] { self->Fail(Cancelled()); });
    };
    if (!shared_->registry->Add(this, cancel)) return Fail(Cancelled());
    deadline_timer_.expires_at(deadline);
    deadline_timer_.async_wait([self = shared_from_this()](const std::error_code& error) {
      if (!error) self->Fail(TimedOut());
    });
    const absl::StatusOr<HostPort> target = HostPort::Parse(address_);
    if (!target.ok()) return Fail(target.status());
    ResolveOnLoop(loop_, *target, [self = shared_from_this()](auto endpoints) {
      self->OnResolved(std::move(endpoints));
    });
  }

  void OnResolved(absl::StatusOr<Endpoints> endpoints) {
    if (!endpoints.ok()) return Fail(endpoints.status());
    endpoints_ = *std::move(endpoints);
    TryNext();
  }

  void TryNext() {
    if (done_ == nullptr) return;
    socket_ = asio::ip::tcp::socket(loop_->context());
    socket_.async_connect(
        endpoints_[tried_++],
        [self = shared_from_this()](const std::error_code& error) { self->OnConnected(error); });
  }

  void OnConnected(std::error_code error) {
    if (done_ == nullptr) return;
    if (!error && IsConnectedToItself()) error = asio::error::connection_refused;
    if (!error) error = Configure(socket_, shared_->options);
    if (!error) {
      Finish()(Connection::New(loop_, shared_->registry, std::move(socket_), shared_->options));
    } else if (tried_ < endpoints_.size()) {
      TryNext();
    } else {
      Fail(absl::UnavailableError(ErrorText(error)));
    }
  }

  /// A dial of a port of this host where nobody listens may be given that very port for its own
  /// end, and TCP then connects it to itself.
  bool IsConnectedToItself() const {
    std::error_code error;
    const auto local = socket_.local_endpoint(error);
    const auto remote = socket_.remote_endpoint(error);
    return !error && local == remote;
  }

  static absl::Status TimedOut() {
    return absl::DeadlineExceededError("no answer until the deadline");
  }
  static absl::Status Cancelled() { return absl::CancelledError("the transport was closed"); }

  void Fail(const absl::Status& status) {
    if (done_ == nullptr) return;
    const DialCallback done = Finish();
    std::error_code ignored;
    socket_.close(ignored);
    done(Annotate(status, absl::StrCat("dial ", address_)));
  }

  DialCallback Finish() {
    shared_->registry->Remove(this);
    deadline_timer_.cancel();
    return std::exchange(done_, nullptr);
  }

  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<Loop> loop_;
  const std::string address_;
  DialCallback done_;  // null once the outcome is known
  asio::ip::tcp::socket socket_;
  asio::steady_timer deadline_timer_;
  Endpoints endpoints_;
  std::size_t tried_ = 0;
};

}  // namespace

void Dial(std::shared_ptr<Shared> shared, const std::string& address, TimePoint deadline,
          DialCallback done) {
  std::make_shared<DialOperation>(std::move(shared), address, std::move(done))->Start(deadline);
}

}  // namespace weir::transport::tcp
