// The conformance suite over TCP: one loop and two, polling and sleeping, whole reads and crumbs.
#include <gtest/gtest.h>

#include "transport/conformance_testing.h"
#include "transport/tcp/transport.h"

namespace weir::transport {
namespace {

class TcpWorld final : public World {
 public:
  TcpWorld(const tcp::Options& options, std::string host)
      : options_(options), host_(std::move(host)) {}
  std::unique_ptr<Transport> NewTransport() override { return tcp::NewTransport(options_); }
  std::string Host() const override { return host_; }
  Scheduler* scheduler() override { return scheduler_.get(); }

 private:
  const tcp::Options options_;
  const std::string host_;
  const std::unique_ptr<Scheduler> scheduler_ = NewPoolScheduler(1);
};

Backend Tcp(const std::string& name, const tcp::Options& options, std::string host = "127.0.0.1") {
  return {name, [options, host] { return std::make_unique<TcpWorld>(options, host); }};
}

INSTANTIATE_TEST_SUITE_P(Tcp, TransportConformanceTest,
                         testing::Values(Tcp("Default", {}), Tcp("TwoLoops", {.io_threads = 2}),
                                         Tcp("NoPoll", {.poll_before_sleep = Duration::zero()}),
                                         // Partial writes and reads everywhere, which take their
                                         // time on a busy machine.
                                         Tcp("Crumbs", {.linger = std::chrono::seconds(20),
                                                        .transfer_bytes_max = 3001,
                                                        .send_buffer_bytes = 4096})),
                         BackendName());

}  // namespace
}  // namespace weir::transport
