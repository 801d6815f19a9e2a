#include "rpc/grpc/control_plane.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/host_port.h"
#include "rpc/conformance_testing.h"

namespace weir::rpc {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::HasSubstr;

World MakeWorld(const GrpcOptions& options = {}) {
  return {.scheduler = NewPoolScheduler(4), .plane = NewGrpcControlPlane(options)};
}

INSTANTIATE_TEST_SUITE_P(Carrier, ControlPlaneConformance,
                         ::testing::Values(WorldKind{"Grpc", true, [] { return MakeWorld(); }}),
                         KindName);

/// Any message by the name of its method; the answer's bytes or the status of the way.
absl::StatusOr<std::string> CallByName(const std::string& address, const std::string& method,
                                       const std::string& request) {
  const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + seconds(15));
  grpc::CompletionQueue queue;
  const grpc::Slice slice(request);
  const grpc::ByteBuffer message(&slice, 1);
  const auto reader = stub.PrepareUnaryCall(&context, method, message, &queue);
  reader->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  reader->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) {
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }
  grpc::Slice bytes;
  EXPECT_TRUE(reply.DumpToSingleSlice(&bytes).ok());
  return std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

/// Sends `bytes` as they are; the server may close at any moment.
void SendRaw(int port, const std::string& bytes) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(fd, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  (void)::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  ::close(fd);
}

std::string RandomBytes(std::mt19937& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

/// An HTTP/2 frame of a type that exists, with a random body.
std::string RandomFrame(std::mt19937& random) {
  const std::string body = RandomBytes(random, random() % 60);
  std::string frame = {'\0', '\0', static_cast<char>(body.size()), static_cast<char>(random() % 10),
                       static_cast<char>(random())};
  frame += std::string({'\0', '\0', '\0', static_cast<char>(random() % 4)});
  return frame + body;
}

class GrpcTest : public ControlPlaneConformance {};

/// A first pause of an hour: only a poke lets a call try again within a test's time.
INSTANTIATE_TEST_SUITE_P(Patient, GrpcTest,
                         ::testing::Values(WorldKind{"Grpc", true,
                                                     [] {
                                                       return MakeWorld({.backoff_min = hours(1),
                                                                         .backoff_max = hours(2)});
                                                     }}),
                         KindName);

TEST_P(GrpcTest, APokeEndsThePauseBetweenTwoAttempts) {
  const std::string address = UnusedAddress();
  const auto client = plane().NewClient(address);
  // Brings the channel into its pause.
  ASSERT_EQ(Announce(*client, Within(seconds(15))).code(), absl::StatusCode::kUnavailable);
  Inbox<absl::Status> inbox(driver_.get());
  client->Announce({}, Within(seconds(18), true), inbox.Reply());
  Serve(HostPort::Parse(address)->port);
  client->Poke();
  const absl::Status status = Get(inbox);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(service_.calls, 1);
}

TEST_P(GrpcTest, ACallThatDoesNotWaitNeedsNoPoke) {
  const std::string address = UnusedAddress();
  const auto client = plane().NewClient(address);
  ASSERT_EQ(Announce(*client, Within(seconds(15))).code(), absl::StatusCode::kUnavailable);
  Serve(HostPort::Parse(address)->port);
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = Announce(*client, Within(seconds(15)));
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST_P(GrpcTest, TheHealthCheckSaysServing) {
  Serve();
  const auto reply = CallByName(server_->Address(), "/grpc.health.v1.Health/Check", "");
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(*reply, std::string("\x08\x01"));  // status: SERVING
}

TEST_P(GrpcTest, MastersThatWaitDoNotKeepWorkersFromAnswering) {
  Serve();
  service_.record = false;
  constexpr int kSessions = 40;  // more than there are threads
  Latch entered(&scheduler());
  Latch latch(&scheduler());
  std::atomic<bool> block = true;
  service_.on_call = [&] {
    entered.Open();
    if (block) latch.Wait();
  };
  std::vector<Inbox<absl::StatusOr<SessionReply>>> sessions;
  for (int i = 0; i < kSessions; ++i) {
    client_->OpenSession({}, {}, Within(seconds(18)), sessions.emplace_back(driver_.get()).Reply());
  }
  entered.Wait();
  block = false;
  EXPECT_TRUE(Announce(*client_, Within(seconds(15))).ok());
  latch.Open();
  for (const auto& session : sessions) EXPECT_TRUE(Get(session).ok()) << Get(session).status();
}

TEST_P(GrpcTest, WhoseCallHasEndedIsNotServedAnyMore) {
  Serve();
  service_.record = false;
  Latch entered(&scheduler());
  Latch latch(&scheduler());
  service_.on_call = [&] {
    entered.Open();
    latch.Wait();
  };
  constexpr int kCalls = 60;  // more than there are threads
  std::vector<Inbox<absl::Status>> inboxes;
  for (int i = 0; i < kCalls; ++i) {
    client_->Announce({}, Within(seconds(15)), inboxes.emplace_back(driver_.get()).Reply());
  }
  entered.Wait();
  server_->Close(Duration::zero());
  for (const auto& inbox : inboxes) {
    EXPECT_EQ(Get(inbox).code(), absl::StatusCode::kUnavailable) << Get(inbox);
  }
  latch.Open();
  server_ = nullptr;
  EXPECT_LT(service_.calls, kCalls);
}

TEST_P(GrpcTest, WhoseDeadlineHasPassedIsNotServedAnyMore) {
  Serve();
  service_.record = false;
  Latch latch(&scheduler());
  service_.on_call = [&] { latch.Wait(); };
  constexpr Duration kTime = std::chrono::milliseconds(300);
  constexpr int kThreads = 8;  // of the server, for calls of this kind
  constexpr int kCalls = 60;
  std::vector<Inbox<absl::Status>> inboxes;
  for (int i = 0; i < kCalls; ++i) {
    client_->Announce({}, Within(kTime), inboxes.emplace_back(driver_.get()).Reply());
  }
  for (const auto& inbox : inboxes) {
    EXPECT_EQ(Get(inbox).code(), absl::StatusCode::kDeadlineExceeded);
  }
  // The server counts from when it read a call. It has read all of them once it answers one that
  // came later on the same connection; other threads refuse this one, without the service.
  SessionRequest no_graph;
  no_graph.graph.nodes.emplace_back();
  const auto refused = Call<absl::StatusOr<SessionReply>>([&](auto reply) {
    client_->OpenSession({}, no_graph, Within(seconds(15)), std::move(reply));
  });
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument) << refused.status();
  bool all_have_passed = false;
  scheduler().PostAt(scheduler().Now() + kTime,
                     [&] { driver_->Post([&] { all_have_passed = true; }); });
  EXPECT_TRUE(Await([&] { return all_have_passed; }));
  latch.Open();
  server_ = nullptr;
  EXPECT_LE(service_.calls, kThreads);
}

TEST_P(GrpcTest, WhatIsNoRequestIsRefusedAndDoesNoHarm) {
  Serve();
  std::mt19937 random(5);
  for (int i = 0; i < 100; ++i) {
    for (const char* method : {"OpenSession", "RegisterPlan", "GetStatus", "NoSuchMethod"}) {
      (void)CallByName(server_->Address(), absl::StrCat("/weir.rpc.v1.Task/", method),
                       RandomBytes(random, random() % 100));
    }
  }
  const auto garbage = CallByName(server_->Address(), "/weir.rpc.v1.Task/OpenSession", "\xff");
  EXPECT_FALSE(garbage.ok());
  EXPECT_TRUE(Announce(*client_, Within(seconds(15))).ok());
}

TEST_P(GrpcTest, RandomBytesAtThePortDisturbNobody) {
  Serve();
  ASSERT_TRUE(Announce(*client_, Within(seconds(15))).ok());
  std::mt19937 random(6);
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  for (int i = 0; i < 300; ++i) {
    std::string bytes = RandomBytes(random, random() % 3000);
    if (i % 3 == 1) bytes = preface + bytes;
    if (i % 3 == 2) bytes = preface + RandomFrame(random) + RandomFrame(random);
    SendRaw(server_->Port(), bytes);
    if (i % 10 == 0) {
      EXPECT_TRUE(Announce(*client_, Within(seconds(15))).ok());
    }
  }
  EXPECT_TRUE(Announce(*plane().NewClient(server_->Address()), Within(seconds(15))).ok());
}

TEST_P(GrpcTest, APortTakenByAnotherProgramIsRefusedByName) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int port = ntohs(address.sin_port);
  const absl::Status status = plane().Serve("127.0.0.1", port, &service_).status();
  ::close(fd);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("127.0.0.1:", port)));
  EXPECT_THAT(std::string(status.message()), HasSubstr("Address already in use"));
}

TEST_P(GrpcTest, AnAddressOfAnotherMachineIsRefusedByName) {
  const absl::Status status = plane().Serve("192.0.2.1", 0, &service_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("192.0.2.1:0: Cannot assign requested"));
}

TEST_P(GrpcTest, Ipv6AddressesWearBrackets) {
  auto server = plane().Serve("::1", 0, &service_);
  if (!server.ok()) GTEST_SKIP() << "no IPv6 here: " << server.status();
  EXPECT_EQ((*server)->Address(), absl::StrCat("[::1]:", (*server)->Port()));
  EXPECT_TRUE(Announce(*plane().NewClient((*server)->Address()), Within(seconds(15))).ok());
}

}  // namespace
}  // namespace weir::rpc
