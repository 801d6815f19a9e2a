// What is special to TCP; what holds for every transport is in conformance_testing.cc.
#include "transport/tcp/transport.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transport/conformance_testing.h"
#include "transport/tcp/raw_socket_testing.h"

namespace weir::transport::tcp {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class TcpTransportTest : public testing::Test {
 protected:
  explicit TcpTransportTest(const Options& options = {.linger = milliseconds(50)})
      : transport_(NewTransport(options)) {}
  ~TcpTransportTest() override {
    listener_.reset();
    transport_.reset();
  }

  TimePoint In(Duration duration) const { return scheduler_->Now() + duration; }

  /// Listens and starts a Recorder on whatever connects; the newest is accepted_.
  absl::Status Listen(const std::string& host, Recorder::OnFrameHook hook = nullptr) {
    auto listener =
        transport_->Listen(host, 0, [this, hook](std::shared_ptr<Connection> connection) {
          auto handler = std::make_shared<Recorder>(waiter_, hook);
          connection->Start(handler);
          MutexLock lock(mutex_);
          accepted_ = std::move(handler);
          waiter_->Notify();
        });
    if (listener.ok()) listener_ = *std::move(listener);
    return listener.status();
  }

  std::shared_ptr<Recorder> WaitForAccepted() {
    std::shared_ptr<Recorder> handler;
    EXPECT_TRUE(waiter_->Wait([&] {
      MutexLock lock(mutex_);
      handler = std::exchange(accepted_, nullptr);
      return handler != nullptr;
    }));
    return handler;
  }

  absl::StatusOr<std::shared_ptr<Connection>> Dial(const std::string& address,
                                                   Duration within = seconds(10)) {
    auto result = std::make_shared<absl::StatusOr<std::shared_ptr<Connection>>>(
        absl::InternalError("never answered"));
    auto answered = std::make_shared<std::atomic<bool>>(false);
    transport_->Dial(address, In(within), [=, waiter = waiter_](auto dialled) {
      *result = std::move(dialled);
      *answered = true;
      waiter->Notify();
    });
    waiter_->Wait([&] { return answered->load(); });
    return *answered ? *result : absl::InternalError("never answered");
  }

  std::shared_ptr<Recorder> Start(Connection& connection, Recorder::OnFrameHook hook = nullptr) {
    auto handler = std::make_shared<Recorder>(waiter_, std::move(hook));
    connection.Start(handler);
    return handler;
  }

  const std::unique_ptr<Scheduler> scheduler_ = NewPoolScheduler(1);
  const std::shared_ptr<Waiter> waiter_ = std::make_shared<Waiter>(scheduler_.get());
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Listener> listener_;
  Mutex mutex_;
  std::shared_ptr<Recorder> accepted_ WEIR_GUARDED_BY(mutex_);
};

Frame SmallFrame(std::uint64_t step) {
  return {.header = {.type = FrameType::kRun, .step = step}, .body = "body", .payload = {}};
}

TEST_F(TcpTransportTest, NamesAreResolved) {
  ASSERT_TRUE(Listen("localhost").ok());
  const auto connection = Dial(absl::StrCat("localhost:", listener_->Port()));
  ASSERT_TRUE(connection.ok()) << connection.status();
  (*connection)->Send(SmallFrame(1));
  EXPECT_TRUE(WaitForAccepted()->WaitForFrames(1));
}

TEST_F(TcpTransportTest, Ipv6HostsAreInBrackets) {
  if (!Listen("::1").ok()) GTEST_SKIP() << "no IPv6 here";
  EXPECT_EQ(listener_->Address(), absl::StrCat("[::1]:", listener_->Port()));
  const auto connection = Dial(listener_->Address());
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_EQ((*connection)->PeerAddress(), listener_->Address());
  (*connection)->Send(SmallFrame(1));
  EXPECT_TRUE(WaitForAccepted()->WaitForFrames(1));
}

TEST_F(TcpTransportTest, UnknownHostIsNamed) {
  const absl::Status status = Dial("no-such-host.invalid:7", seconds(2)).status();
  // Where no name server answers, the deadline comes first.
  EXPECT_TRUE(status.code() == absl::StatusCode::kUnavailable ||
              status.code() == absl::StatusCode::kDeadlineExceeded)
      << status;
  EXPECT_NE(std::string(status.message()).find("no-such-host.invalid"), std::string::npos);
}

TEST_F(TcpTransportTest, NobodyWaitsForANameServer) {
  std::atomic<int> answered = 0;
  transport_->Dial("no-such-host.invalid:7", In(seconds(60)), [&](auto) { ++answered; });
  const TimePoint start = scheduler_->Now();
  transport_.reset();
  EXPECT_EQ(answered, 1);
  EXPECT_LT(scheduler_->Now() - start, seconds(5));
}

TEST_F(TcpTransportTest, SilentPeerExceedsTheDeadline) {
  // A full queue of connections that nobody accepts: the system drops what else comes.
  const RawSocket full = RawSocket::Listen(0);
  const RawSocket filler = RawSocket::Connect(full.Port());
  absl::Status status;
  for (int i = 0; i < 5 && status.ok(); ++i) {
    const auto connection = Dial(full.Address(), milliseconds(100));
    status = connection.status();
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
}

TEST_F(TcpTransportTest, BytesThatAreNoFrameCloseWithInvalidArgument) {
  ASSERT_TRUE(Listen("127.0.0.1").ok());
  const RawSocket peer = RawSocket::Connect(listener_->Port());
  peer.Write("GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: somebody else\r\n\r\n");
  const auto handler = WaitForAccepted();
  ASSERT_TRUE(handler->WaitForClose());
  EXPECT_EQ(handler->reason().code(), absl::StatusCode::kInvalidArgument);
  peer.Drain();  // ends: the socket is closed
}

TEST_F(TcpTransportTest, PeerThatVanishesInsideAFrameIsUnavailable) {
  ASSERT_TRUE(Listen("127.0.0.1").ok());
  const std::string bytes = FrameBytes(1, "body", "payload");
  for (const std::size_t cut : {1UL, 47UL, 48UL, 50UL, bytes.size() - 1}) {
    {
      const RawSocket peer = RawSocket::Connect(listener_->Port());
      peer.Write(std::string_view(bytes).substr(0, cut));
    }
    const auto handler = WaitForAccepted();
    ASSERT_TRUE(handler->WaitForClose());
    EXPECT_EQ(handler->reason().code(), absl::StatusCode::kUnavailable) << cut;
  }
}

TEST_F(TcpTransportTest, PeerThatResetsIsUnavailable) {
  ASSERT_TRUE(Listen("127.0.0.1").ok());
  {
    const RawSocket peer = RawSocket::Connect(listener_->Port());
    peer.ResetOnClose();
  }
  const auto handler = WaitForAccepted();
  ASSERT_TRUE(handler->WaitForClose());
  EXPECT_EQ(handler->reason().code(), absl::StatusCode::kUnavailable);
}

TEST_F(TcpTransportTest, LastWordsAreReadThoughSendingFails) {
  const RawSocket listening = RawSocket::Listen(1);
  const auto connection = Dial(listening.Address());
  ASSERT_TRUE(connection.ok()) << connection.status();
  {
    const RawSocket peer = listening.Accept();
    (*connection)->Send(SmallFrame(1));
    peer.Read(10);
    peer.Write(FrameBytes(7, "you are not welcome", ""));
    // Closed with bytes unread, which resets the connection.
  }
  for (int i = 0; i < 3; ++i) (*connection)->Send(SmallFrame(2));
  const auto handler = Start(**connection);
  ASSERT_TRUE(handler->WaitForClose());
  ASSERT_EQ(handler->frame_count(), 1U);
  EXPECT_EQ(handler->frames()[0].body, "you are not welcome");
  EXPECT_EQ(handler->reason().code(), absl::StatusCode::kUnavailable);
}

TEST_F(TcpTransportTest, PeerThatDoesNotReadHoldsUpACloseForTheLingerTimeOnly) {
  const RawSocket listening = RawSocket::Listen(1);
  const auto connection = Dial(listening.Address());
  ASSERT_TRUE(connection.ok()) << connection.status();
  const RawSocket peer = listening.Accept();
  const auto handler = Start(**connection);
  for (std::uint64_t step = 0; step < 10; ++step) {
    (*connection)
        ->Send({.header = {.type = FrameType::kTensor, .step = step},
                .body = "",
                .payload = NewPatternBuffer(2'000'000, step)});
  }
  (*connection)->Close(absl::OkStatus());
  ASSERT_TRUE(handler->WaitForClose());
  EXPECT_TRUE(handler->reason().ok());
}

TEST_F(TcpTransportTest, FramesOfOneHandlerCallLeaveTogether) {
  constexpr std::uint64_t kFrames = 100;
  const RawSocket listening = RawSocket::Listen(1);
  const auto connection = Dial(listening.Address());
  ASSERT_TRUE(connection.ok()) << connection.status();
  const RawSocket peer = listening.Accept();
  const auto handler = Start(**connection, [connection = *connection](const Received&) {
    for (std::uint64_t step = 0; step < kFrames; ++step) connection->Send(SmallFrame(step));
    return absl::OkStatus();
  });
  peer.Write(FrameBytes(1, "go", ""));
  const std::size_t bytes = kFrames * (kHeaderBytes + 4);
  EXPECT_EQ(peer.Read(bytes).size(), bytes);
  if (peer.DataSegmentsIn() == 0) GTEST_SKIP() << "this kernel does not count segments";
  EXPECT_LE(peer.DataSegmentsIn(), 2U);
}

TEST_F(TcpTransportTest, ManyFramesOfOneReadAreAllDelivered) {
  ASSERT_TRUE(Listen("127.0.0.1").ok());
  const RawSocket peer = RawSocket::Connect(listener_->Port());
  std::string bytes;
  for (std::uint64_t step = 0; step < 2000; ++step) {
    bytes += FrameBytes(step, std::string(step % 7, 'b'), std::string(step % 11, 'p'));
  }
  peer.Write(bytes);
  const auto handler = WaitForAccepted();
  ASSERT_TRUE(handler->WaitForFrames(2000));
  const std::vector<Received> frames = handler->frames();
  for (std::uint64_t step = 0; step < 2000; ++step) {
    EXPECT_EQ(frames[step].header.step, step);
    EXPECT_EQ(frames[step].body.size(), step % 7);
    EXPECT_EQ(frames[step].payload.size, step % 11);
  }
}

std::size_t OpenDescriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST_F(TcpTransportTest, NoDescriptorIsLeftBehind) {
  ASSERT_TRUE(Listen("127.0.0.1").ok());
  const std::size_t before = OpenDescriptors();
  for (int i = 0; i < 20; ++i) {
    const auto connection = Dial(listener_->Address());
    ASSERT_TRUE(connection.ok());
    const auto far = WaitForAccepted();
    if (i % 2 == 0) {
      const auto near = Start(**connection);
      (*connection)->Close(absl::OkStatus());
      ASSERT_TRUE(near->WaitForClose());
      ASSERT_TRUE(far->WaitForClose());
    }
  }
  EXPECT_TRUE(waiter_->Wait([&] {
    waiter_->Notify();
    return OpenDescriptors() <= before;
  }));
}

/// Refuses payloads as a real handler does, before they are allocated.
class CarefulEcho : public FrameHandler {
 public:
  explicit CarefulEcho(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)) {}
  absl::StatusOr<Buffer> OnPayload(const FrameHeader& header, std::span<const std::byte>) override {
    if (header.payload_bytes > 10'000) return absl::ResourceExhaustedError("too large");
    return NewTestBuffer(header.payload_bytes);
  }
  absl::Status OnFrame(const FrameHeader& header, std::span<const std::byte>,
                       Buffer payload) override {
    connection_->Send({.header = header, .body = "", .payload = std::move(payload)});
    return absl::OkStatus();
  }
  void OnClosed(const absl::Status&) override { connection_.reset(); }

 private:
  std::shared_ptr<Connection> connection_;
};

std::string RandomBytes(std::mt19937& random) {
  std::string bytes(random() % 200, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

/// A good frame with one to four bytes changed, which is mostly still a frame.
std::string MutatedFrame(std::mt19937& random) {
  std::string bytes =
      FrameBytes(random(), std::string(random() % 20, 'b'), std::string(random() % 50, 'p'));
  const unsigned mutations = 1 + random() % 4;
  for (unsigned i = 0; i < mutations; ++i) {
    bytes[random() % bytes.size()] = static_cast<char>(random());
  }
  return bytes;
}

class TcpFuzzTest : public TcpTransportTest {
 protected:
  void ListenCarefully() {
    auto listener = transport_->Listen("127.0.0.1", 0, [](std::shared_ptr<Connection> connection) {
      connection->Start(std::make_shared<CarefulEcho>(connection));
    });
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
  }

  /// A few at a time: a connection ends with the first that is no frame.
  static constexpr int kPerConnection = 4;

  template <typename NewBytes>
  void Bombard(int count, NewBytes new_bytes) {
    ListenCarefully();
    const auto bystander = Dial(listener_->Address());
    ASSERT_TRUE(bystander.ok()) << bystander.status();
    const auto handler = Start(**bystander);
    std::mt19937 random(1);
    for (int i = 0; i < count; i += kPerConnection) {
      const RawSocket peer = RawSocket::Connect(listener_->Port());
      peer.ResetOnClose();  // no port is left waiting
      for (int j = 0; j < kPerConnection; ++j) peer.Write(new_bytes(random));
      peer.ShutDown();
      peer.Drain();  // the listener has looked at all of it
    }
    (*bystander)->Send(SmallFrame(42));
    ASSERT_TRUE(handler->WaitForFrames(1));
    EXPECT_EQ(handler->frames()[0].header.step, 42U);
    EXPECT_EQ(handler->closed_count(), 0);
  }
};

TEST_F(TcpFuzzTest, RandomBytesHarmNobodyElse) {
  Bombard(20'000, RandomBytes);
}

TEST_F(TcpFuzzTest, MutatedFramesHarmNobodyElse) {
  Bombard(20'000, MutatedFrame);
}

}  // namespace
}  // namespace weir::transport::tcp
