// How fast frames go there and back over loopback: one JSON line for each size and way of waiting.
//
//   transport_bench [poll_before_sleep_us [io_threads]]
//
// "loop": both ends answer from the handler, so that two loops alone are at work. "driver": the
// near end is a thread that waits in a Driver, as one that runs a step does.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/scheduler.h"
#include "base/status.h"
#include "transport/connection.h"
#include "transport/tcp/transport.h"

namespace weir::transport {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLargest = 100'000'000;

Buffer NewBuffer(std::size_t size) {
  std::shared_ptr<std::byte[]> bytes = std::make_shared<std::byte[]>(size);
  std::byte* const data = bytes.get();
  return {std::move(bytes), data, size};
}

/// Receives into one buffer again and again, as leases of a pool do.
class Handler : public FrameHandler {
 public:
  explicit Handler(std::function<void(Buffer)> on_frame) : on_frame_(std::move(on_frame)) {}

  absl::StatusOr<Buffer> OnPayload(const FrameHeader& header, std::span<const std::byte>) override {
    return Buffer{buffer_.owner, buffer_.data, header.payload_bytes};
  }
  absl::Status OnFrame(const FrameHeader&, std::span<const std::byte>, Buffer payload) override {
    on_frame_(std::move(payload));
    return absl::OkStatus();
  }
  void OnClosed(const absl::Status& reason) override {
    if (!reason.ok()) std::fprintf(stderr, "closed: %s\n", reason.ToString().c_str());
  }

 private:
  const std::function<void(Buffer)> on_frame_;
  const Buffer buffer_ = NewBuffer(kLargest);
};

class Bench {
 public:
  explicit Bench(const tcp::Options& options)
      : server_(tcp::NewTransport(options)), client_(tcp::NewTransport(options)) {
    listener_ = *server_->Listen("127.0.0.1", 0, [](std::shared_ptr<Connection> connection) {
      Connection& far = *connection;
      far.Start(std::make_shared<Handler>([connection = std::move(connection)](Buffer payload) {
        Send(*connection, std::move(payload));
      }));
    });
    bool connected = false;
    client_->Dial(listener_->Address(), Clock::now() + std::chrono::seconds(5), [&](auto near) {
      near_ = *near;
      near_->Start(std::make_shared<Handler>([this](Buffer) { on_echo_(); }));
      driver_->Post([&] { connected = true; });
    });
    driver_->RunUntil([&] { return connected; }, TimePoint::max());
  }

  /// Measures `rounds` echoes of `bytes` bytes, after a tenth as many that do not count.
  void Run(const char* mode, std::size_t bytes, int rounds) {
    std::vector<double> us;
    const bool by_driver = std::strcmp(mode, "driver") == 0;
    const int warmup = rounds / 10 + 1;
    int left = rounds + warmup;
    bool done = false;
    Clock::time_point start;
    const std::function<void()> next = [&] {
      start = Clock::now();
      Send(*near_, Buffer{payload_.owner, payload_.data, bytes});
    };
    const std::function<void()> finish_round = [&] {
      us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
      if (--left > 0) {
        next();
      } else if (by_driver) {
        done = true;
      } else {
        driver_->Post([&] { done = true; });
      }
    };
    on_echo_ = [&] { by_driver ? driver_->Post(finish_round) : finish_round(); };
    next();
    driver_->RunUntil([&] { return done; }, TimePoint::max());
    us.erase(us.begin(), us.begin() + warmup);
    Print(mode, bytes, us);
  }

 private:
  static void Send(Connection& connection, Buffer payload) {
    connection.Send({.header = {.type = FrameType::kTensor}, .body = "", .payload = payload});
  }

  static void Print(const char* mode, std::size_t bytes, std::vector<double> us) {
    std::sort(us.begin(), us.end());
    const auto at = [&](double part) {
      return us[static_cast<std::size_t>(part * static_cast<double>(us.size() - 1))];
    };
    std::printf(
        "{\"bench\": \"transport_echo\", \"transport\": \"tcp\", \"mode\": \"%s\", \"bytes\": %zu, "
        "\"rounds\": %zu, \"min_us\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f, "
        "\"gigabytes_per_second_each_way\": %.2f}\n",
        mode, bytes, us.size(), us.front(), at(0.5), at(0.99),
        static_cast<double>(bytes) / at(0.5) / 1e3);
    std::fflush(stdout);
  }

  const std::unique_ptr<Scheduler> scheduler_ = NewPoolScheduler(1);
  const std::unique_ptr<Driver> driver_ = scheduler_->NewDriver();
  const std::unique_ptr<Transport> server_;
  const std::unique_ptr<Transport> client_;
  std::unique_ptr<Listener> listener_;
  std::shared_ptr<Connection> near_;
  const Buffer payload_ = NewBuffer(kLargest);
  std::function<void()> on_echo_;
};

}  // namespace
}  // namespace weir::transport

int main(int argc, char** argv) {
  weir::transport::tcp::Options options;
  if (argc > 1) options.poll_before_sleep = std::chrono::microseconds(std::atoi(argv[1]));
  if (argc > 2) options.io_threads = std::atoi(argv[2]);
  weir::transport::Bench bench(options);
  for (const char* const mode : {"loop", "driver"}) {
    bench.Run(mode, 64, 20'000);
    bench.Run(mode, 1'000'000, 500);
    bench.Run(mode, 100'000'000, 20);
  }
  return 0;
}
