// One suite that every transport must pass. A backend joins it with a World and one line:
//
//   INSTANTIATE_TEST_SUITE_P(Tcp, TransportConformanceTest, testing::Values(Backend{"...", ...}),
//                            BackendName());
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/scheduler.h"
#include "transport/connection.h"

namespace weir::transport {

/// A place where transports of one kind can reach each other.
class World {
 public:
  virtual ~World() = default;
  virtual std::unique_ptr<Transport> NewTransport() = 0;
  /// What a listener listens on.
  virtual std::string Host() const = 0;
  /// Waits are driven by it: a simulated one runs the transports meanwhile.
  virtual Scheduler* scheduler() = 0;
};

struct Backend {
  std::string name;
  std::function<std::unique_ptr<World>()> new_world;

  friend void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }
};

struct BackendName {
  std::string operator()(const testing::TestParamInfo<Backend>& info) const {
    return info.param.name;
  }
};

/// A buffer of its own memory.
Buffer NewTestBuffer(std::size_t size);
/// Its content depends on `seed`, so that a byte out of place shows.
Buffer NewPatternBuffer(std::size_t size, std::uint64_t seed);
bool HasPattern(const Buffer& buffer, std::uint64_t seed);

/// Lets the test's thread wait for what happens on loops.
class Waiter {
 public:
  explicit Waiter(Scheduler* scheduler) : scheduler_(scheduler), driver_(scheduler->NewDriver()) {}

  /// To be called after each change that somebody may wait for.
  void Notify() { driver_->Post(nullptr); }
  /// False after ten seconds.
  bool Wait(const std::function<bool()>& done);

 private:
  Scheduler* const scheduler_;
  const std::unique_ptr<Driver> driver_;
};

struct Received {
  FrameHeader header;
  std::string body;
  Buffer payload;
};

/// A handler that writes down what it is told, and checks what holds for every handler: calls do
/// not overlap, none comes from inside a public method, none after OnClosed.
class Recorder : public FrameHandler {
 public:
  /// What it does with a frame, before it is written down. On the loop.
  using OnFrameHook = std::function<absl::Status(const Received&)>;

  explicit Recorder(std::shared_ptr<Waiter> waiter, OnFrameHook hook = nullptr)
      : waiter_(std::move(waiter)), hook_(std::move(hook)) {}
  ~Recorder() override { waiter_->Notify(); }

  absl::StatusOr<Buffer> OnPayload(const FrameHeader& header,
                                   std::span<const std::byte> body) override;
  absl::Status OnFrame(const FrameHeader& header, std::span<const std::byte> body,
                       Buffer payload) override;
  void OnClosed(const absl::Status& reason) override;

  void SetPayloadError(absl::Status error);
  std::vector<Received> frames() const;
  std::size_t frame_count() const;
  int payload_count() const;
  int closed_count() const;
  /// REQUIRES: closed.
  absl::Status reason() const;
  /// The buffer that the last OnPayload gave.
  Buffer given() const;

  bool WaitForFrames(std::size_t count);
  bool WaitForClose();

 private:
  class Call;

  const std::shared_ptr<Waiter> waiter_;
  const OnFrameHook hook_;
  std::atomic<bool> in_call_{false};
  mutable Mutex mutex_;
  std::vector<Received> frames_ WEIR_GUARDED_BY(mutex_);
  int payloads_ WEIR_GUARDED_BY(mutex_) = 0;
  Buffer given_ WEIR_GUARDED_BY(mutex_);
  absl::Status payload_error_ WEIR_GUARDED_BY(mutex_);
  std::vector<absl::Status> closed_ WEIR_GUARDED_BY(mutex_);
};

/// Marks this thread as being inside a public method of a transport while it lives.
class PublicCall {
 public:
  PublicCall();
  ~PublicCall();
  static bool IsInside();
};

class TransportConformanceTest : public testing::TestWithParam<Backend> {
 protected:
  /// Both ends of a connection, started unless said otherwise.
  struct Ends {
    std::shared_ptr<Connection> near;
    std::shared_ptr<Connection> far;
    std::shared_ptr<Recorder> near_handler;
    std::shared_ptr<Recorder> far_handler;
  };

  TransportConformanceTest();
  ~TransportConformanceTest() override;

  std::shared_ptr<Recorder> NewRecorder(Recorder::OnFrameHook hook = nullptr) const {
    return std::make_shared<Recorder>(waiter_, std::move(hook));
  }
  TimePoint In(Duration duration) const { return world_->scheduler()->Now() + duration; }

  /// Listens and keeps the connections that come.
  void Listen();
  std::shared_ptr<Connection> Dial();
  absl::StatusOr<std::shared_ptr<Connection>> TryDial(const std::string& address,
                                                      TimePoint deadline);
  std::shared_ptr<Connection> WaitForAccept();
  Ends Connect();
  void Start(Ends& ends, Recorder::OnFrameHook near = nullptr, Recorder::OnFrameHook far = nullptr);
  Ends ConnectAndStart();
  void CloseAll();

  std::unique_ptr<World> world_;
  std::shared_ptr<Waiter> waiter_;
  std::unique_ptr<Transport> server_;
  std::unique_ptr<Transport> client_;
  std::unique_ptr<Listener> listener_;

  mutable Mutex mutex_;
  std::vector<std::shared_ptr<Connection>> accepted_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::transport
