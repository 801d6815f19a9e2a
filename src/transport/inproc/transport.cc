#include "transport/inproc/transport.h"

#include <atomic>
#include <utility>

#include "base/status.h"
#include "transport/inproc/connection.h"
#include "transport/inproc/dial.h"
#include "transport/inproc/listener.h"

namespace weir::transport::inproc {
namespace {

class InprocTransport final : public Transport {
 public:
  explicit InprocTransport(std::shared_ptr<Wire> wire) : shared_(std::make_shared<Shared>()) {
    shared_->wire = std::move(wire);
  }

  ~InprocTransport() override {
    Close();
    Join();
  }

  absl::StatusOr<std::unique_ptr<transport::Listener>> Listen(const std::string&, int port,
                                                              AcceptCallback on_accept) override {
    auto acceptor = std::make_shared<Acceptor>(shared_, std::move(on_accept));
    WEIR_RETURN_IF_ERROR(acceptor->Bind(port));
    return std::make_unique<Listener>(std::move(acceptor));
  }

  void Dial(const std::string& address, TimePoint deadline, DialCallback done) override {
    inproc::Dial(shared_, address, deadline, std::move(done));
  }

  void Close() override { shared_->registry.CloseAll(); }

  /// Waits by a driver: on a SimScheduler this pumps the work that it waits for.
  void Join() override {
    // Shared with the callback, which may still be in Post when this thread has seen `empty`.
    const std::shared_ptr<Driver> driver = shared_->wire->scheduler()->NewDriver();
    auto empty = std::make_shared<std::atomic<bool>>(false);
    shared_->callbacks.Close([driver, empty] {
      *empty = true;
      driver->Post(nullptr);
    });
    driver->RunUntil([&] { return empty->load(); }, TimePoint::max());
  }

 private:
  const std::shared_ptr<Shared> shared_;
};

}  // namespace

std::unique_ptr<Transport> NewTransport(std::shared_ptr<Wire> wire) {
  return std::make_unique<InprocTransport>(std::move(wire));
}

}  // namespace weir::transport::inproc
