#include "transport/conformance_testing.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <thread>

#include "absl/strings/str_cat.h"

namespace weir::transport {
namespace {

using std::chrono::seconds;

thread_local int inside_public_calls = 0;

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void Send(Connection& connection, Frame frame) {
  const PublicCall call;
  connection.Send(std::move(frame));
}

void Close(Connection& connection, absl::Status reason) {
  const PublicCall call;
  connection.Close(std::move(reason));
}

void StartWith(Connection& connection, std::shared_ptr<FrameHandler> handler) {
  const PublicCall call;
  connection.Start(std::move(handler));
}

Frame SmallFrame(std::uint64_t step, std::string body = "body") {
  return {
      .header = {.type = FrameType::kRun, .step = step}, .body = std::move(body), .payload = {}};
}

Frame TensorFrame(std::uint64_t step, std::size_t bytes) {
  return {.header = {.type = FrameType::kTensor, .step = step},
          .body = absl::StrCat("tensor ", step),
          .payload = NewPatternBuffer(bytes, step)};
}

}  // namespace

Buffer NewTestBuffer(std::size_t size) {
  std::shared_ptr<std::byte[]> bytes = std::make_shared<std::byte[]>(size);
  std::byte* const data = bytes.get();
  return {std::move(bytes), data, size};
}

Buffer NewPatternBuffer(std::size_t size, std::uint64_t seed) {
  // A period that divides no power of two: what is off by a page or a block differs, too.
  constexpr std::size_t kPeriod = 10'007;
  Buffer buffer = NewTestBuffer(size);
  for (std::size_t i = 0; i < std::min(size, kPeriod); ++i) {
    buffer.data[i] = static_cast<std::byte>(seed * 31 + i + i / 251);
  }
  for (std::size_t filled = kPeriod; filled < size; filled += kPeriod) {
    std::memcpy(buffer.data + filled, buffer.data, std::min(kPeriod, size - filled));
  }
  return buffer;
}

bool HasPattern(const Buffer& buffer, std::uint64_t seed) {
  const Buffer expected = NewPatternBuffer(buffer.size, seed);
  return buffer.size == 0 || std::memcmp(buffer.data, expected.data, buffer.size) == 0;
}

bool Waiter::Wait(const std::function<bool()>& done) {
  return driver_->RunUntil(done, scheduler_->Now() + seconds(10));
}

PublicCall::PublicCall() {
  ++inside_public_calls;
}
PublicCall::~PublicCall() {
  --inside_public_calls;
}
bool PublicCall::IsInside() {
  return inside_public_calls > 0;
}

/// One call of a handler's method.
class Recorder::Call {
 public:
  explicit Call(Recorder& recorder) : recorder_(recorder) {
    EXPECT_FALSE(PublicCall::IsInside()) << "called from inside a public method";
    EXPECT_FALSE(recorder_.in_call_.exchange(true)) << "two calls at once";
    EXPECT_EQ(recorder_.closed_count(), 0) << "called after OnClosed";
  }
  ~Call() {
    recorder_.in_call_ = false;
    recorder_.waiter_->Notify();
  }

 private:
  Recorder& recorder_;
};

absl::StatusOr<Buffer> Recorder::OnPayload(const FrameHeader& header, std::span<const std::byte>) {
  const Call call(*this);
  EXPECT_GT(header.payload_bytes, 0U);
  Buffer buffer = NewTestBuffer(header.payload_bytes);
  MutexLock lock(mutex_);
  ++payloads_;
  if (!payload_error_.ok()) return payload_error_;
  given_ = buffer;
  return buffer;
}

absl::Status Recorder::OnFrame(const FrameHeader& header, std::span<const std::byte> body,
                               Buffer payload) {
  const Call call(*this);
  EXPECT_EQ(body.size(), header.body_bytes);
  EXPECT_EQ(payload.size, header.payload_bytes);
  Received received{.header = header, .body = Text(body), .payload = std::move(payload)};
  const absl::Status status = hook_ ? hook_(received) : absl::OkStatus();
  MutexLock lock(mutex_);
  frames_.push_back(std::move(received));
  return status;
}

void Recorder::OnClosed(const absl::Status& reason) {
  const Call call(*this);
  MutexLock lock(mutex_);
  closed_.push_back(reason);
}

void Recorder::SetPayloadError(absl::Status error) {
  MutexLock lock(mutex_);
  payload_error_ = std::move(error);
}

std::vector<Received> Recorder::frames() const {
  MutexLock lock(mutex_);
  return frames_;
}

std::size_t Recorder::frame_count() const {
  MutexLock lock(mutex_);
  return frames_.size();
}

int Recorder::payload_count() const {
  MutexLock lock(mutex_);
  return payloads_;
}

int Recorder::closed_count() const {
  MutexLock lock(mutex_);
  return static_cast<int>(closed_.size());
}

absl::Status Recorder::reason() const {
  MutexLock lock(mutex_);
  return closed_.at(0);
}

Buffer Recorder::given() const {
  MutexLock lock(mutex_);
  return given_;
}

bool Recorder::WaitForFrames(std::size_t count) {
  return waiter_->Wait([&] { return frame_count() >= count; });
}

bool Recorder::WaitForClose() {
  return waiter_->Wait([&] { return closed_count() > 0; });
}

TransportConformanceTest::TransportConformanceTest()
    : world_(GetParam().new_world()),
      waiter_(std::make_shared<Waiter>(world_->scheduler())),
      server_(world_->NewTransport()),
      client_(world_->NewTransport()) {}

TransportConformanceTest::~TransportConformanceTest() {
  CloseAll();
  MutexLock lock(mutex_);
  accepted_.clear();
}

void TransportConformanceTest::CloseAll() {
  listener_.reset();
  client_.reset();
  server_.reset();
}

void TransportConformanceTest::Listen() {
  auto listener = server_->Listen(world_->Host(), 0,
                                  [this, waiter = waiter_](std::shared_ptr<Connection> connection) {
                                    EXPECT_FALSE(PublicCall::IsInside());
                                    {
                                      MutexLock lock(mutex_);
                                      accepted_.push_back(std::move(connection));
                                    }
                                    waiter->Notify();
                                  });
  ASSERT_TRUE(listener.ok()) << listener.status();
  listener_ = *std::move(listener);
}

absl::StatusOr<std::shared_ptr<Connection>> TransportConformanceTest::TryDial(
    const std::string& address, TimePoint deadline) {
  // Kept by the callback: it may come after this has given up.
  struct Outcome {
    Mutex mutex;
    std::optional<absl::StatusOr<std::shared_ptr<Connection>>> result WEIR_GUARDED_BY(mutex);
  };
  auto outcome = std::make_shared<Outcome>();
  {
    const PublicCall call;
    client_->Dial(address, deadline, [outcome, waiter = waiter_](auto result) {
      EXPECT_FALSE(PublicCall::IsInside());
      {
        MutexLock lock(outcome->mutex);
        EXPECT_FALSE(outcome->result.has_value());
        outcome->result = std::move(result);
      }
      waiter->Notify();
    });
  }
  const auto is_known = [&] {
    MutexLock lock(outcome->mutex);
    return outcome->result.has_value();
  };
  if (!waiter_->Wait(is_known)) return absl::InternalError("the dial was never answered");
  MutexLock lock(outcome->mutex);
  return *outcome->result;
}

std::shared_ptr<Connection> TransportConformanceTest::Dial() {
  auto connection = TryDial(listener_->Address(), In(seconds(10)));
  EXPECT_TRUE(connection.ok()) << connection.status();
  return connection.ok() ? *connection : nullptr;
}

std::shared_ptr<Connection> TransportConformanceTest::WaitForAccept() {
  const auto came = [&] {
    MutexLock lock(mutex_);
    return !accepted_.empty();
  };
  EXPECT_TRUE(waiter_->Wait(came));
  MutexLock lock(mutex_);
  if (accepted_.empty()) return nullptr;
  std::shared_ptr<Connection> connection = std::move(accepted_.back());
  accepted_.pop_back();
  return connection;
}

TransportConformanceTest::Ends TransportConformanceTest::Connect() {
  if (listener_ == nullptr) Listen();
  Ends ends;
  ends.near = Dial();
  ends.far = WaitForAccept();
  return ends;
}

void TransportConformanceTest::Start(Ends& ends, Recorder::OnFrameHook near,
                                     Recorder::OnFrameHook far) {
  ends.near_handler = NewRecorder(std::move(near));
  ends.far_handler = NewRecorder(std::move(far));
  StartWith(*ends.near, ends.near_handler);
  StartWith(*ends.far, ends.far_handler);
}

TransportConformanceTest::Ends TransportConformanceTest::ConnectAndStart() {
  Ends ends = Connect();
  Start(ends);
  return ends;
}

TEST_P(TransportConformanceTest, CarriesAWholeFrameBothWays) {
  const Ends ends = ConnectAndStart();
  Frame frame = {.header = {.type = FrameType::kTensor,
                            .flags = 0x8001,
                            .epoch = 5,
                            .edge = 6,
                            .origin = ~std::uint64_t{0},
                            .step = 8},
                 .body = std::string("\0body", 5),
                 .payload = NewPatternBuffer(1000, 3)};
  Send(*ends.near, frame);
  Send(*ends.far, frame);
  for (const auto& handler : {ends.near_handler, ends.far_handler}) {
    ASSERT_TRUE(handler->WaitForFrames(1));
    const Received received = handler->frames()[0];
    EXPECT_EQ(received.header.type, FrameType::kTensor);
    EXPECT_EQ(received.header.flags, 0x8001);
    EXPECT_EQ(received.header.epoch, 5U);
    EXPECT_EQ(received.header.edge, 6U);
    EXPECT_EQ(received.header.origin, ~std::uint64_t{0});
    EXPECT_EQ(received.header.step, 8U);
    EXPECT_EQ(received.body, frame.body);
    EXPECT_TRUE(HasPattern(received.payload, 3));
  }
}

TEST_P(TransportConformanceTest, PayloadArrivesInTheBufferThatWasGiven) {
  const Ends ends = ConnectAndStart();
  Send(*ends.near, TensorFrame(1, 3'000'000));
  ASSERT_TRUE(ends.far_handler->WaitForFrames(1));
  const Received received = ends.far_handler->frames()[0];
  EXPECT_EQ(received.payload.data, ends.far_handler->given().data);
  EXPECT_TRUE(HasPattern(received.payload, 1));
}

TEST_P(TransportConformanceTest, EmptyPayloadNeedsNoBuffer) {
  const Ends ends = ConnectAndStart();
  Send(*ends.near, SmallFrame(1, ""));
  ASSERT_TRUE(ends.far_handler->WaitForFrames(1));
  EXPECT_EQ(ends.far_handler->payload_count(), 0);
  EXPECT_EQ(ends.far_handler->frames()[0].payload.size, 0U);
}

TEST_P(TransportConformanceTest, SizesAroundEveryBoundaryArriveInOrder) {
  const Ends ends = ConnectAndStart();
  std::vector<std::size_t> sizes;
  for (const std::size_t near : {0UL, 64UL, 65536UL, 1UL << 20}) {
    for (const std::size_t size : {near - 1, near, near + 1, near + kHeaderBytes}) {
      if (size < (2UL << 20)) sizes.push_back(size);
    }
  }
  std::mt19937 random(1);
  std::shuffle(sizes.begin(), sizes.end(), random);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Frame frame = TensorFrame(i, sizes[i]);
    if (i % 3 == 0) frame.body = std::string(i % 2 == 0 ? kBodyBytesMax : 0, 'b');
    Send(*ends.near, std::move(frame));
  }
  ASSERT_TRUE(ends.far_handler->WaitForFrames(sizes.size()));
  const std::vector<Received> frames = ends.far_handler->frames();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(frames[i].header.step, i);
    EXPECT_EQ(frames[i].payload.size, sizes[i]);
    EXPECT_TRUE(HasPattern(frames[i].payload, i)) << sizes[i];
  }
}

TEST_P(TransportConformanceTest, FramesOfEachThreadKeepTheirOrder) {
  const Ends ends = ConnectAndStart();
  constexpr std::uint32_t kThreads = 3;
  constexpr std::uint64_t kEach = 300;
  std::vector<std::thread> threads;
  for (std::uint32_t id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      for (std::uint64_t step = 0; step < kEach; ++step) {
        Frame frame = SmallFrame(step, std::string(step % 100, 'x'));
        frame.header.edge = id;
        Send(*ends.near, std::move(frame));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(ends.far_handler->WaitForFrames(kThreads * kEach));
  std::map<std::uint32_t, std::uint64_t> next;
  for (const Received& received : ends.far_handler->frames()) {
    EXPECT_EQ(received.header.step, next[received.header.edge]++);
    EXPECT_EQ(received.body.size(), received.header.step % 100);
  }
}

TEST_P(TransportConformanceTest, HandlersMayAnswerFromTheLoop) {
  Ends ends = Connect();
  constexpr std::uint64_t kRounds = 200;
  const auto answer = [](std::shared_ptr<Connection> connection) {
    return [connection](const Received& received) {
      if (received.header.step < kRounds) Send(*connection, SmallFrame(received.header.step + 1));
      return absl::OkStatus();
    };
  };
  Start(ends, answer(ends.near), answer(ends.far));
  Send(*ends.near, SmallFrame(1));
  ASSERT_TRUE(ends.far_handler->WaitForFrames(kRounds / 2));
  ASSERT_TRUE(ends.near_handler->WaitForFrames(kRounds / 2));
  EXPECT_EQ(ends.near_handler->frames().back().header.step, kRounds);
}

TEST_P(TransportConformanceTest, BothWaysAtOnceDoNotBlockEachOther) {
  const Ends ends = ConnectAndStart();
  constexpr std::size_t kBytes = 4'000'000;  // more than the buffers in between hold
  for (std::uint64_t step = 0; step < 2; ++step) {
    Send(*ends.near, TensorFrame(step, kBytes));
    Send(*ends.far, TensorFrame(step, kBytes));
  }
  ASSERT_TRUE(ends.near_handler->WaitForFrames(2));
  ASSERT_TRUE(ends.far_handler->WaitForFrames(2));
  for (const Received& received : ends.near_handler->frames()) {
    EXPECT_TRUE(HasPattern(received.payload, received.header.step));
  }
}

TEST_P(TransportConformanceTest, WhatIsSentBeforeStartWaitsForIt) {
  Ends ends = Connect();
  Send(*ends.near, SmallFrame(1));
  Send(*ends.far, SmallFrame(2));
  Start(ends);
  ASSERT_TRUE(ends.near_handler->WaitForFrames(1));
  ASSERT_TRUE(ends.far_handler->WaitForFrames(1));
  EXPECT_EQ(ends.far_handler->frames()[0].header.step, 1U);
}

TEST_P(TransportConformanceTest, QueuedBytesFallToZeroAndThePayloadIsReleased) {
  const Ends ends = ConnectAndStart();
  Frame frame = TensorFrame(1, 2'000'000);
  const std::weak_ptr<void> owner = frame.payload.owner;
  Send(*ends.near, std::move(frame));
  ASSERT_TRUE(ends.far_handler->WaitForFrames(1));
  Send(*ends.near, SmallFrame(2));
  ASSERT_TRUE(ends.far_handler->WaitForFrames(2));
  EXPECT_TRUE(waiter_->Wait([&] {
    waiter_->Notify();  // nobody else does when a queue becomes empty
    return ends.near->QueuedBytes() == 0 && owner.expired();
  }));
}

TEST_P(TransportConformanceTest, CloseWithOkFlushesWhatIsQueued) {
  const Ends ends = ConnectAndStart();
  constexpr std::uint64_t kFrames = 5;
  for (std::uint64_t step = 0; step < kFrames; ++step) {
    Send(*ends.near, TensorFrame(step, 1'500'000));
  }
  Close(*ends.near, absl::OkStatus());
  Send(*ends.near, SmallFrame(99));  // dropped
  ASSERT_TRUE(ends.far_handler->WaitForClose());
  ASSERT_TRUE(ends.near_handler->WaitForClose());
  EXPECT_TRUE(ends.near_handler->reason().ok()) << ends.near_handler->reason();
  EXPECT_TRUE(ends.far_handler->reason().ok()) << ends.far_handler->reason();
  EXPECT_EQ(ends.far_handler->frame_count(), kFrames);
}

TEST_P(TransportConformanceTest, CloseBeforeStartFlushesToo) {
  Ends ends = Connect();
  Send(*ends.near, TensorFrame(1, 1'500'000));
  Close(*ends.near, absl::OkStatus());
  Start(ends);
  ASSERT_TRUE(ends.far_handler->WaitForClose());
  ASSERT_TRUE(ends.near_handler->WaitForClose());
  EXPECT_EQ(ends.far_handler->frame_count(), 1U);
  EXPECT_TRUE(ends.near_handler->reason().ok());
}

TEST_P(TransportConformanceTest, FirstReasonToCloseCounts) {
  const Ends ends = ConnectAndStart();
  Close(*ends.near, absl::AbortedError("first"));
  Close(*ends.near, absl::OkStatus());
  Close(*ends.near, absl::InternalError("third"));
  ASSERT_TRUE(ends.near_handler->WaitForClose());
  EXPECT_EQ(ends.near_handler->reason(), absl::AbortedError("first"));
  ASSERT_TRUE(ends.far_handler->WaitForClose());
}

TEST_P(TransportConformanceTest, BothEndsMayCloseAtOnce) {
  const Ends ends = ConnectAndStart();
  Close(*ends.near, absl::OkStatus());
  Close(*ends.far, absl::OkStatus());
  ASSERT_TRUE(ends.near_handler->WaitForClose());
  ASSERT_TRUE(ends.far_handler->WaitForClose());
  EXPECT_TRUE(ends.near_handler->reason().ok());
  EXPECT_TRUE(ends.far_handler->reason().ok());
}

TEST_P(TransportConformanceTest, NothingIsDeliveredAfterAHandlerHasClosed) {
  Ends ends = Connect();
  Start(ends, nullptr, [connection = ends.far](const Received&) {
    Close(*connection, absl::OkStatus());
    return absl::OkStatus();
  });
  for (std::uint64_t step = 0; step < 10; ++step) Send(*ends.near, SmallFrame(step));
  ASSERT_TRUE(ends.far_handler->WaitForClose());
  ASSERT_TRUE(ends.near_handler->WaitForClose());
  EXPECT_EQ(ends.far_handler->frame_count(), 1U);
  EXPECT_TRUE(ends.far_handler->reason().ok());
}

TEST_P(TransportConformanceTest, ErrorOfAHandlerClosesWithThatStatus) {
  Ends ends = Connect();
  Start(ends, nullptr, [](const Received&) { return absl::DataLossError("no such edge"); });
  Send(*ends.near, SmallFrame(1));
  Send(*ends.near, SmallFrame(2));
  ASSERT_TRUE(ends.far_handler->WaitForClose());
  EXPECT_EQ(ends.far_handler->reason(), absl::DataLossError("no such edge"));
  EXPECT_EQ(ends.far_handler->frame_count(), 1U);
  ASSERT_TRUE(ends.near_handler->WaitForClose());
}

TEST_P(TransportConformanceTest, RefusedPayloadClosesWithThatStatus) {
  Ends ends = ConnectAndStart();
  ends.far_handler->SetPayloadError(absl::ResourceExhaustedError("too large"));
  Send(*ends.near, TensorFrame(1, 5'000'000));
  ASSERT_TRUE(ends.far_handler->WaitForClose());
  EXPECT_EQ(ends.far_handler->reason(), absl::ResourceExhaustedError("too large"));
  EXPECT_EQ(ends.far_handler->frame_count(), 0U);
  ASSERT_TRUE(ends.near_handler->WaitForClose());
}

TEST_P(TransportConformanceTest, CloseBeforeStartIsToldAtStart) {
  Ends ends = Connect();
  Close(*ends.near, absl::AbortedError("changed my mind"));
  Start(ends);
  ASSERT_TRUE(ends.near_handler->WaitForClose());
  EXPECT_EQ(ends.near_handler->reason(), absl::AbortedError("changed my mind"));
  ASSERT_TRUE(ends.far_handler->WaitForClose());
}

TEST_P(TransportConformanceTest, ConnectionThatIsDroppedUnstartedIsClosed) {
  Ends ends = Connect();
  ends.near_handler = NewRecorder();
  StartWith(*ends.near, ends.near_handler);
  ends.far.reset();
  ASSERT_TRUE(ends.near_handler->WaitForClose());
}

TEST_P(TransportConformanceTest, StartedConnectionLivesUntilItIsClosed) {
  Ends ends = ConnectAndStart();
  ends.far.reset();
  Send(*ends.near, SmallFrame(1));
  EXPECT_TRUE(ends.far_handler->WaitForFrames(1));
  EXPECT_EQ(ends.far_handler->closed_count(), 0);
}

TEST_P(TransportConformanceTest, HandlerIsReleasedAfterOnClosed) {
  Ends ends = ConnectAndStart();
  const std::weak_ptr<Recorder> near = ends.near_handler;
  const std::weak_ptr<Recorder> far = ends.far_handler;
  Close(*ends.near, absl::OkStatus());
  ASSERT_TRUE(ends.near_handler->WaitForClose());
  ASSERT_TRUE(ends.far_handler->WaitForClose());
  ends.near_handler.reset();
  ends.far_handler.reset();
  EXPECT_TRUE(waiter_->Wait([&] { return near.expired() && far.expired(); }));
}

TEST_P(TransportConformanceTest, TransportClosesItsConnections) {
  const Ends ends = ConnectAndStart();
  {
    const PublicCall call;
    client_->Close();
  }
  ASSERT_TRUE(ends.near_handler->WaitForClose());
  EXPECT_EQ(ends.near_handler->reason().code(), absl::StatusCode::kCancelled);
  ASSERT_TRUE(ends.far_handler->WaitForClose());
}

TEST_P(TransportConformanceTest, JoinReturnsWhenEveryHandlerHasBeenTold) {
  std::vector<std::shared_ptr<Recorder>> handlers;
  for (int i = 0; i < 5; ++i) {
    const Ends ends = ConnectAndStart();
    handlers.insert(handlers.end(), {ends.near_handler, ends.far_handler});
  }
  client_->Close();
  server_->Close();
  client_->Join();
  server_->Join();
  for (const auto& handler : handlers) EXPECT_EQ(handler->closed_count(), 1);
}

TEST_P(TransportConformanceTest, StartAfterTheTransportIsClosedTellsSo) {
  Ends ends = Connect();
  client_->Close();
  ends.near_handler = NewRecorder();
  StartWith(*ends.near, ends.near_handler);
  ASSERT_TRUE(ends.near_handler->WaitForClose());
  EXPECT_EQ(ends.near_handler->reason().code(), absl::StatusCode::kCancelled);
}

TEST_P(TransportConformanceTest, ClosedTransportRefusesPolitely) {
  Listen();
  client_->Close();
  EXPECT_EQ(TryDial(listener_->Address(), In(seconds(10))).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(client_->Listen(world_->Host(), 0, [](auto) {}).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_P(TransportConformanceTest, ConnectionsMayOutliveTheirTransports) {
  Ends started = ConnectAndStart();
  const Ends unstarted = Connect();
  CloseAll();
  EXPECT_EQ(started.near_handler->closed_count(), 1);
  for (const auto& connection : {started.near, unstarted.near, unstarted.far}) {
    Send(*connection, SmallFrame(1));
    Close(*connection, absl::OkStatus());
    EXPECT_FALSE(connection->PeerAddress().empty());
    connection->QueuedBytes();
  }
}

TEST_P(TransportConformanceTest, NobodyListeningIsUnavailable) {
  Listen();
  const std::string address = listener_->Address();
  listener_->Close();
  const absl::Status status = TryDial(address, In(seconds(10))).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(std::string(status.message()).find(address), std::string::npos) << status;
}

TEST_P(TransportConformanceTest, NoAddressIsAnError) {
  for (const char* const address : {"", "no address", "host:", "host:99999", ":1"}) {
    const absl::Status status = TryDial(address, In(seconds(10))).status();
    EXPECT_TRUE(status.code() == absl::StatusCode::kInvalidArgument ||
                status.code() == absl::StatusCode::kUnavailable)
        << address << ": " << status;
  }
}

TEST_P(TransportConformanceTest, DeadlineThatHasPassedIsExceeded) {
  Listen();
  EXPECT_EQ(TryDial(listener_->Address(), In(-seconds(1))).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_P(TransportConformanceTest, TakenPortIsUnavailableAndNamed) {
  Listen();
  const auto second = server_->Listen(world_->Host(), listener_->Port(), [](auto) {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable) << second.status();
  const std::string message(second.status().message());
  EXPECT_NE(message.find(listener_->Address()), std::string::npos) << message;
  EXPECT_NE(message.find("in use"), std::string::npos) << message;
}

TEST_P(TransportConformanceTest, ClosedListenerFreesItsPortAndKeepsItsConnections) {
  const Ends ends = ConnectAndStart();
  const int port = listener_->Port();
  listener_->Close();
  Send(*ends.near, SmallFrame(1));
  EXPECT_TRUE(ends.far_handler->WaitForFrames(1));
  const auto second = server_->Listen(world_->Host(), port, [](auto) {});
  EXPECT_TRUE(second.ok()) << second.status();
}

TEST_P(TransportConformanceTest, ManyConnectionsAreIndependent) {
  std::vector<Ends> all;
  for (int i = 0; i < 10; ++i) all.push_back(ConnectAndStart());
  Close(*all[3].near, absl::AbortedError("this one only"));
  ASSERT_TRUE(all[3].near_handler->WaitForClose());
  ASSERT_TRUE(all[3].far_handler->WaitForClose());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == 3) continue;
    Send(*all[i].near, SmallFrame(i));
    ASSERT_TRUE(all[i].far_handler->WaitForFrames(1));
    EXPECT_EQ(all[i].far_handler->frames()[0].header.step, i);
    EXPECT_EQ(all[i].near_handler->closed_count(), 0);
  }
}

/// Random calls, then the end, at any moment: every callback comes exactly once (Recorder counts
/// those that come too often).
TEST_P(TransportConformanceTest, EverythingEndsOnceInEveryState) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    CloseAll();
    server_ = world_->NewTransport();
    client_ = world_->NewTransport();
    struct State {
      Mutex mutex;
      std::vector<std::shared_ptr<Connection>> connections WEIR_GUARDED_BY(mutex);
      std::vector<std::shared_ptr<Recorder>> handlers WEIR_GUARDED_BY(mutex);
      int answered WEIR_GUARDED_BY(mutex) = 0;
    };
    auto state = std::make_shared<State>();
    const auto keep = [state, this](std::shared_ptr<Connection> connection, bool start) {
      MutexLock lock(state->mutex);
      if (start) {
        state->handlers.push_back(NewRecorder());
        StartWith(*connection, state->handlers.back());
      }
      state->connections.push_back(std::move(connection));
    };
    auto listener = server_->Listen(world_->Host(), 0,
                                    [keep](auto connection) { keep(std::move(connection), true); });
    ASSERT_TRUE(listener.ok());
    int dialled = 0;
    const auto act = [&](std::uint64_t step) {
      std::shared_ptr<Connection> connection;
      {
        MutexLock lock(state->mutex);
        if (!state->connections.empty()) {
          connection = state->connections[random() % state->connections.size()];
        }
      }
      const unsigned choice = random() % 16;
      if (choice < 4 || connection == nullptr) {
        ++dialled;
        const bool start = random() % 4 != 0;
        client_->Dial((*listener)->Address(), In(seconds(10)), [keep, state, start](auto dialed) {
          if (dialed.ok()) keep(*std::move(dialed), start);
          MutexLock lock(state->mutex);
          ++state->answered;
        });
      } else if (choice < 11) {
        Send(*connection, TensorFrame(step, random() % 3 == 0 ? 400'000 : 10));
      } else if (choice < 12) {
        Close(*connection, absl::OkStatus());
      } else if (choice < 13) {
        Close(*connection, absl::AbortedError("chaos"));
      } else if (choice < 14) {
        MutexLock lock(state->mutex);
        std::erase(state->connections, connection);
      } else {
        waiter_->Wait([&, turns = random() % 20]() mutable {
          waiter_->Notify();
          return turns-- == 0;
        });
      }
    };
    const unsigned steps = random() % 40;
    for (unsigned step = 0; step < steps; ++step) act(step);
    if (random() % 2 == 0) (*listener)->Close();
    std::vector<std::unique_ptr<Transport>*> transports = {&server_, &client_};
    if (random() % 2 == 0) std::swap(transports[0], transports[1]);
    for (auto* transport : transports) transport->reset();
    MutexLock lock(state->mutex);
    EXPECT_EQ(state->answered, dialled);
    for (const auto& handler : state->handlers) EXPECT_EQ(handler->closed_count(), 1);
  }
}

}  // namespace weir::transport
