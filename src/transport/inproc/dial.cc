#include "transport/inproc/dial.h"

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strand.h"
#include "cluster/host_port.h"
#include "transport/inproc/listener.h"

namespace weir::transport::inproc {
namespace {

constexpr char kHost[] = "inproc";

/// All but Start() runs on the strand.
class DialOperation : public std::enable_shared_from_this<DialOperation> {
 public:
  DialOperation(std::shared_ptr<Shared> shared, std::string address, DialCallback done)
      : shared_(std::move(shared)),
        address_(std::move(address)),
        strand_(shared_->wire->scheduler()),
        done_(std::move(done)) {}

  void Start(TimePoint deadline) {
    strand_.Post([self = shared_from_this(), deadline] { self->Begin(deadline); });
  }

 private:
  void Begin(TimePoint deadline) {
    Scheduler* const scheduler = shared_->wire->scheduler();
    const TimePoint now = scheduler->Now();
    if (deadline <= now) return Fail(TimedOut());
    if (!shared_->registry.Add(this, FailLater(Cancelled()))) return Fail(Cancelled());
    deadline_timer_ = scheduler->PostAt(deadline, FailLater(TimedOut()));
    scheduler->PostAt(now + shared_->wire->DrawDelay(), [self = shared_from_this()] {
      self->strand_.Post([self] { self->Connect(); });
    });
  }

  static absl::Status TimedOut() {
    return absl::DeadlineExceededError("no answer until the deadline");
  }
  static absl::Status Cancelled() { return absl::CancelledError("the transport was closed"); }

  std::function<void()> FailLater(absl::Status status) {
    return [weak = weak_from_this(), status = std::move(status)] {
      const std::shared_ptr<DialOperation> self = weak.lock();
      if (self != nullptr) self->strand_.Post([self, status] { self->Fail(status); });
    };
  }

  void Connect() {
    if (done_ == nullptr) return;
    const absl::StatusOr<HostPort> target = HostPort::Parse(address_);
    if (!target.ok()) return Fail(target.status());
    if (target->host != kHost) return Fail(absl::UnavailableError("unknown host"));
    const std::shared_ptr<Acceptor> acceptor = shared_->wire->FindAcceptor(target->port);
    std::shared_ptr<Connection> connection =
        acceptor == nullptr ? nullptr : acceptor->Connect(shared_, target->port);
    if (connection == nullptr) return Fail(absl::UnavailableError("Connection refused"));
    // Everything about a connection is called on its own strand, its loop.
    Strand& strand = connection->strand();
    strand.Post([shared = shared_, done = Finish(), connection = std::move(connection)]() mutable {
      std::exchange(done, nullptr)(std::move(connection));
      shared->callbacks.Leave();
    });
  }

  void Fail(const absl::Status& status) {
    if (done_ == nullptr) return;
    Finish()(Annotate(status, absl::StrCat("dial ", address_)));
    shared_->callbacks.Leave();
  }

  DialCallback Finish() {
    shared_->registry.Remove(this);
    if (deadline_timer_ != nullptr) deadline_timer_->Cancel();
    return std::exchange(done_, nullptr);
  }

  const std::shared_ptr<Shared> shared_;
  const std::string address_;
  Strand strand_;
  DialCallback done_;  // null once the outcome is known
  std::shared_ptr<Timer> deadline_timer_;
};

}  // namespace

void Dial(std::shared_ptr<Shared> shared, const std::string& address, TimePoint deadline,
          DialCallback done) {
  if (!shared->callbacks.EnterUntilEmpty()) return;
  std::make_shared<DialOperation>(shared, address, std::move(done))->Start(deadline);
}

}  // namespace weir::transport::inproc
