#include "transport/tcp/transport.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "transport/tcp/dial.h"
#include "transport/tcp/listener.h"
#include "transport/tcp/shared.h"

namespace weir::transport::tcp {
namespace {

class TcpTransport final : public Transport {
 public:
  explicit TcpTransport(const Options& options) : shared_(std::make_shared<Shared>()) {
    shared_->options = options;
    for (int i = 0; i < std::max(options.io_threads, 1); ++i) {
      shared_->loops.push_back(std::make_shared<Loop>(options.poll_before_sleep));
    }
    for (const std::shared_ptr<Loop>& loop : shared_->loops) {
      threads_.emplace_back([loop] { loop->Run(); });
    }
  }

  ~TcpTransport() override {
    Close();
    Join();
  }

  absl::StatusOr<std::unique_ptr<transport::Listener>> Listen(const std::string& host, int port,
                                                              AcceptCallback on_accept) override {
    if (port < 0 || port > kPortMax) {
      return absl::InvalidArgumentError(absl::StrCat("no port: ", port));
    }
    auto acceptor = std::make_shared<Acceptor>(shared_, std::move(on_accept));
    WEIR_RETURN_IF_ERROR(acceptor->Listen(host, port));
    return std::make_unique<Listener>(std::move(acceptor));
  }

  void Dial(const std::string& address, TimePoint deadline, DialCallback done) override {
    tcp::Dial(shared_, address, deadline, std::move(done));
  }

  void Close() override { shared_->registry->CloseAll(); }

  void Join() override {
    MutexLock lock(join_mutex_);
    for (const std::shared_ptr<Loop>& loop : shared_->loops) loop->End();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  static constexpr int kPortMax = 65535;

  const std::shared_ptr<Shared> shared_;
  Mutex join_mutex_;
  std::vector<std::thread> threads_;  // written by the constructor and under join_mutex_
};

}  // namespace

std::unique_ptr<Transport> NewTransport(const Options& options) {
  return std::make_unique<TcpTransport>(options);
}

}  // namespace weir::transport::tcp
