#include "rpc/conformance_testing.h"

#include <gmock/gmock.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "cluster/host_port.h"
#include "rpc/sample_graph_testing.h"

namespace weir::rpc {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

void Latch::Open() {
  MutexLock lock(mutex_);
  open_ = true;
  for (const auto& waiter : waiters_) waiter->Post([] {});
}

bool Latch::IsOpen() {
  MutexLock lock(mutex_);
  return open_;
}

void Latch::Wait() {
  const std::shared_ptr<Driver> driver = scheduler_->NewDriver();
  {
    MutexLock lock(mutex_);
    waiters_.push_back(driver);
  }
  driver->RunUntil([this] { return IsOpen(); }, scheduler_->Now() + seconds(30));
  MutexLock lock(mutex_);
  std::erase(waiters_, driver);
}

ControlPlaneConformance::ControlPlaneConformance()
    : world_(GetParam().make()), driver_(world_.scheduler->NewDriver()) {}

ControlPlaneConformance::~ControlPlaneConformance() {
  server_ = nullptr;
  DestroyPlane();
  scheduler().Close();
  scheduler().Join();
}

void ControlPlaneConformance::Serve(int port) {
  auto server = plane().Serve("127.0.0.1", port, &service_);
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  client_ = plane().NewClient(server_->Address());
}

std::string ControlPlaneConformance::UnusedAddress() {
  FakeService service;
  return plane().Serve("127.0.0.1", 0, &service).value()->Address();
}

CallOptions ControlPlaneConformance::Within(Duration time, bool wait_for_ready) {
  return {.deadline = scheduler().Now() + time, .wait_for_ready = wait_for_ready};
}

bool ControlPlaneConformance::Await(const std::function<bool()>& done) {
  return driver_->RunUntil(done, scheduler().Now() + seconds(20));
}

absl::Status ControlPlaneConformance::Announce(TaskClient& client, const CallOptions& options) {
  return Call<absl::Status>(
      [&](StatusReply reply) { client.Announce({}, options, std::move(reply)); });
}

namespace {

constexpr std::uint64_t kBig = ~std::uint64_t{0} - 10;
constexpr bool kWaitForReady = true;

Caller SampleCaller() {
  return {.cluster_id = kBig,
          .from = {"wörker", 7},
          .from_incarnation = kBig - 1,
          .to = {"ps", 2'000'000'000},
          .to_incarnation = 1};
}

TaskStatus SampleStatus() {
  TaskStatus status;
  status.cluster_id = kBig;
  status.task = {"ps", 3};
  status.incarnation = kBig - 2;
  status.data_address = "[::1]:4711";
  status.version = "0.1.0";
  status.pid = std::int64_t{1} << 40;
  status.uptime_s = 0.1;
  status.steps_run = kBig;
  status.steps_running = 4;
  status.bytes_in = kBig - 3;
  status.bytes_out = kBig - 4;
  status.variables.push_back({.name = "fc1/weight",
                              .container = "容器",
                              .dtype = "float32",
                              .shape = {784, 0, 1},
                              .bytes = kBig,
                              .version = 17,
                              .initialized = true,
                              .trainable = false,
                              .staleness = {kBig, 1, 2, 3, 1.5}});
  status.variables.emplace_back();
  return status;
}

Caller CallerTo(TaskId task) {
  Caller caller;
  caller.to = std::move(task);
  return caller;
}

SessionRequest SessionOf(GraphDef graph) {
  SessionRequest request;
  request.graph = std::move(graph);
  return request;
}

PlanRegistration PlanOf(GraphDef graph) {
  PlanRegistration registration;
  registration.partitions.push_back({"/job:ps/task:0/device:CPU:0", std::move(graph)});
  return registration;
}

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

/// Long, and no UTF-8.
std::string LongText() {
  std::string text(100'000, 'x');
  text.front() = '\xff';
  text.replace(500, 2, std::string("\0ü", 3));
  text += "名前";
  return text;
}

}  // namespace

// Each method: everything given arrives, and what is answered comes back.

TEST_P(ControlPlaneConformance, GetStatusGoesThereAndBack) {
  Serve();
  service_.task = SampleStatus();
  for (const bool with_variables : {true, false}) {
    const auto status = Call<absl::StatusOr<TaskStatus>>([&](Reply<TaskStatus> reply) {
      client_->GetStatus(SampleCaller(), with_variables, Within(seconds(15)), reply);
    });
    ASSERT_TRUE(status.ok()) << status.status();
    EXPECT_EQ(*status, SampleStatus());
    EXPECT_EQ(service_.method, "GetStatus");
    EXPECT_EQ(service_.caller, SampleCaller());
    EXPECT_EQ(service_.flag, with_variables);
  }
}

TEST_P(ControlPlaneConformance, AnnounceGoesThereAndBack) {
  Serve();
  const absl::Status status = Call<absl::Status>(
      [&](StatusReply reply) { client_->Announce(SampleCaller(), Within(seconds(15)), reply); });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(service_.method, "Announce");
  EXPECT_EQ(service_.caller, SampleCaller());
}

TEST_P(ControlPlaneConformance, ACallerWithoutATaskArrivesAsSuch) {
  Serve();
  ASSERT_TRUE(Announce(*client_, Within(seconds(15))).ok());
  EXPECT_EQ(service_.caller, Caller());
}

TEST_P(ControlPlaneConformance, EnsureVariablesGoesThereAndBack) {
  Serve();
  for (const bool initialize : {true, false}) {
    const absl::Status status = Call<absl::Status>([&](StatusReply reply) {
      client_->EnsureVariables(SampleCaller(), SampleVariables(), initialize, Within(seconds(15)),
                               reply);
    });
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(service_.method, "EnsureVariables");
    EXPECT_EQ(service_.caller, SampleCaller());
    EXPECT_EQ(service_.flag, initialize);
    EXPECT_EQ(Difference(SampleVariables(), service_.graph), "");
  }
}

TEST_P(ControlPlaneConformance, RegisterPlanGoesThereAndBack) {
  Serve();
  PlanRegistration registration;
  registration.origin = kBig;
  registration.master = {"worker", 7};
  registration.plan = kBig - 1;
  registration.partitions.push_back({"/job:ps/task:0/device:CPU:0", SamplePartition()});
  registration.partitions.push_back({"/job:ps/task:0/device:CPU:1", SampleGraph()});
  const absl::Status status = Call<absl::Status>([&](StatusReply reply) {
    client_->RegisterPlan(SampleCaller(), registration, Within(seconds(15)), reply);
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(service_.method, "RegisterPlan");
  EXPECT_EQ(service_.caller, SampleCaller());
  EXPECT_EQ(service_.registration.origin, registration.origin);
  EXPECT_EQ(service_.registration.master, registration.master);
  EXPECT_EQ(service_.registration.plan, registration.plan);
  ASSERT_EQ(service_.registration.partitions.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const graph::PartitionDef& arrived = service_.registration.partitions[i];
    EXPECT_EQ(arrived.device, registration.partitions[i].device);
    EXPECT_EQ(Difference(registration.partitions[i].graph, arrived.graph), "");
  }
}

TEST_P(ControlPlaneConformance, ReleasePlansGoesThereAndBack) {
  Serve();
  const std::vector<std::uint64_t> plans = {1, 0, kBig};
  const absl::Status status = Call<absl::Status>([&](StatusReply reply) {
    client_->ReleasePlans(SampleCaller(), kBig, plans, Within(seconds(15)), reply);
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(service_.method, "ReleasePlans");
  EXPECT_EQ(service_.caller, SampleCaller());
  EXPECT_EQ(service_.number, kBig);
  EXPECT_EQ(service_.numbers, plans);
}

TEST_P(ControlPlaneConformance, ResetGoesThereAndBack) {
  Serve();
  const std::vector<std::string> containers = {"", "容器", "b"};
  const absl::Status status = Call<absl::Status>([&](StatusReply reply) {
    client_->Reset(SampleCaller(), containers, Within(seconds(15)), reply);
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(service_.method, "Reset");
  EXPECT_EQ(service_.caller, SampleCaller());
  EXPECT_EQ(service_.texts, containers);
}

TEST_P(ControlPlaneConformance, ShutdownGoesThereAndBack) {
  Serve();
  const absl::Status status = Call<absl::Status>([&](StatusReply reply) {
    client_->Shutdown(SampleCaller(), LongText(), Within(seconds(15)), reply);
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(service_.method, "Shutdown");
  EXPECT_EQ(service_.caller, SampleCaller());
  EXPECT_EQ(service_.texts, std::vector{LongText()});
}

TEST_P(ControlPlaneConformance, OpenSessionGoesThereAndBack) {
  Serve();
  service_.session = {kBig, "[::1]:1", kBig - 1};
  const SessionRequest request = {SampleGraph(), false, true, -1, "größe"};
  const auto reply = Call<absl::StatusOr<SessionReply>>([&](Reply<SessionReply> done) {
    client_->OpenSession(SampleCaller(), request, Within(seconds(15)), done);
  });
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(*reply, service_.session);
  EXPECT_EQ(service_.method, "OpenSession");
  EXPECT_EQ(service_.caller, SampleCaller());
  EXPECT_EQ(service_.session_request.initialize, request.initialize);
  EXPECT_EQ(service_.session_request.soft_placement, request.soft_placement);
  EXPECT_EQ(service_.session_request.start_timeout_ms, request.start_timeout_ms);
  EXPECT_EQ(service_.session_request.cluster_name, request.cluster_name);
  EXPECT_EQ(Difference(request.graph, service_.session_request.graph), "");
}

TEST_P(ControlPlaneConformance, MakePlanGoesThereAndBack) {
  Serve();
  service_.plan = {kBig, LongText(), 3};
  const graph::Signature signature = {{"x", "y:1"}, {"loss"}, {"train", "", "größe"}};
  const auto reply = Call<absl::StatusOr<PlanReply>>([&](Reply<PlanReply> done) {
    client_->MakePlan(SampleCaller(), kBig - 1, signature, Within(seconds(15)), done);
  });
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(*reply, service_.plan);
  EXPECT_EQ(service_.method, "MakePlan");
  EXPECT_EQ(service_.caller, SampleCaller());
  EXPECT_EQ(service_.number, kBig - 1);
  EXPECT_EQ(service_.signature, signature);
}

TEST_P(ControlPlaneConformance, CloseSessionGoesThereAndBack) {
  Serve();
  const absl::Status status = Call<absl::Status>([&](StatusReply reply) {
    client_->CloseSession(SampleCaller(), kBig, Within(seconds(15)), reply);
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(service_.method, "CloseSession");
  EXPECT_EQ(service_.caller, SampleCaller());
  EXPECT_EQ(service_.number, kBig);
}

// Errors.

TEST_P(ControlPlaneConformance, ErrorsOfTheServiceTravelWhole) {
  Serve();
  for (int code = 1; code <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++code) {
    service_.error = absl::Status(static_cast<absl::StatusCode>(code), LongText());
    EXPECT_EQ(Announce(*client_, Within(seconds(15))), service_.error);
    const auto status = Call<absl::StatusOr<TaskStatus>>(
        [&](Reply<TaskStatus> reply) { client_->GetStatus({}, true, Within(seconds(15)), reply); });
    EXPECT_EQ(status.status(), service_.error);
  }
}

TEST_P(ControlPlaneConformance, WhatIsNoGraphDoesNotReachTheService) {
  Serve();
  GraphDef cycle = SamplePartition();
  cycle.nodes.back().inputs = {{static_cast<int>(cycle.nodes.size()) - 1, 0}};
  const auto opened = Call<absl::StatusOr<SessionReply>>([&](Reply<SessionReply> reply) {
    client_->OpenSession({}, SessionOf(cycle), Within(seconds(15)), reply);
  });
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument) << opened.status();
  const absl::Status registered = Call<absl::Status>([&](StatusReply reply) {
    client_->RegisterPlan({}, PlanOf(cycle), Within(seconds(15)), reply);
  });
  EXPECT_EQ(registered.code(), absl::StatusCode::kInvalidArgument) << registered;
  EXPECT_THAT(Text(registered), HasSubstr("/job:ps/task:0/device:CPU:0"));
  const absl::Status ensured = Call<absl::Status>([&](StatusReply reply) {
    client_->EnsureVariables({}, cycle, true, Within(seconds(15)), reply);
  });
  EXPECT_EQ(ensured.code(), absl::StatusCode::kInvalidArgument) << ensured;
  EXPECT_EQ(service_.calls, 0);
}

TEST_P(ControlPlaneConformance, OnlyPlansHoldInternalOps) {
  Serve();
  const auto opened = Call<absl::StatusOr<SessionReply>>([&](Reply<SessionReply> reply) {
    client_->OpenSession({}, SessionOf(SamplePartition()), Within(seconds(15)), reply);
  });
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument) << opened.status();
  EXPECT_THAT(Text(opened.status()), HasSubstr("recv_1"));
  EXPECT_EQ(service_.calls, 0);
}

TEST_P(ControlPlaneConformance, ABadAddressIsAnError) {
  for (const char* address : {"", "nonsense", "host:", "host:70000", "::1:80", "a b:80"}) {
    const absl::Status status =
        Announce(*plane().NewClient(address), Within(seconds(15), kWaitForReady));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << address << ": " << status;
  }
  EXPECT_EQ(plane().Serve("", 0, &service_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(plane().Serve("a b", 0, &service_).status().code(), absl::StatusCode::kInvalidArgument);
  for (const int port : {-1, 65536}) {
    EXPECT_EQ(plane().Serve("127.0.0.1", port, &service_).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_P(ControlPlaneConformance, ATakenPortIsRefusedByName) {
  Serve();
  const absl::Status status = plane().Serve("127.0.0.1", server_->Port(), &service_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Text(status), HasSubstr(server_->Address()));
  EXPECT_THAT(Text(status), HasSubstr("Address already in use"));
  EXPECT_TRUE(Announce(*client_, Within(seconds(15))).ok());
}

TEST_P(ControlPlaneConformance, AServerKnowsItsAddress) {
  Serve();
  EXPECT_GT(server_->Port(), 0);
  EXPECT_EQ(server_->Address(), absl::StrCat("127.0.0.1:", server_->Port()));
  const auto other = plane().Serve("localhost", 0, &service_);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE((*other)->Port(), server_->Port());
  EXPECT_EQ((*other)->Address(), absl::StrCat("localhost:", (*other)->Port()));
  const auto client = plane().NewClient((*other)->Address());
  EXPECT_TRUE(Announce(*client, Within(seconds(15))).ok());
}

// Time.

TEST_P(ControlPlaneConformance, AnAnswerThatDoesNotComeIsAnErrorAtTheDeadline) {
  Serve();
  Latch latch(&scheduler());
  service_.on_call = [&] { latch.Wait(); };
  Inbox<absl::Status> inbox(driver_.get());
  const TimePoint start = scheduler().Now();
  TimePoint end = start;
  client_->Announce(CallerTo({"ps", 1}), Within(milliseconds(200)),
                    [&, reply = inbox.Reply()](absl::Status status) {
                      end = scheduler().Now();
                      reply(std::move(status));
                    });
  const absl::Status status = Get(inbox);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(Text(status), HasSubstr("Announce"));
  EXPECT_THAT(Text(status), HasSubstr("ps:1"));
  EXPECT_THAT(Text(status), HasSubstr(server_->Address()));
  EXPECT_GE(end - start, milliseconds(199));
  EXPECT_LT(end - start, seconds(10));
  latch.Open();
  server_ = nullptr;
  DestroyPlane();
  EXPECT_EQ(inbox.count(), 1U);
}

TEST_P(ControlPlaneConformance, NobodyThereIsAnErrorAtOnce) {
  const std::string address = UnusedAddress();
  const TimePoint start = scheduler().Now();
  const absl::Status status = Call<absl::Status>([&](StatusReply reply) {
    plane().NewClient(address)->Announce(CallerTo({"worker", 3}), Within(seconds(15)), reply);
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(Text(status), HasSubstr("worker:3"));
  EXPECT_THAT(Text(status), HasSubstr(address));
  EXPECT_LT(scheduler().Now() - start, seconds(10));
}

TEST_P(ControlPlaneConformance, WhoWaitsForNobodyWaitsUntilTheDeadline) {
  const std::string address = UnusedAddress();
  const TimePoint start = scheduler().Now();
  const absl::Status status =
      Announce(*plane().NewClient(address), Within(milliseconds(300), kWaitForReady));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(Text(status), HasSubstr(address));
  EXPECT_GE(scheduler().Now() - start, milliseconds(299));
}

TEST_P(ControlPlaneConformance, ATaskMayComeUpAfterThoseWhoWaitForIt) {
  const std::string address = UnusedAddress();
  const auto client = plane().NewClient(address);
  Inbox<absl::Status> inbox(driver_.get());
  client->Announce({}, Within(seconds(15), kWaitForReady), inbox.Reply());
  TimePoint came_up;
  scheduler().PostAt(scheduler().Now() + milliseconds(300), [&] {
    EXPECT_EQ(inbox.count(), 0U);
    Serve(HostPort::Parse(address)->port);
    came_up = scheduler().Now();
  });
  const absl::Status status = Get(inbox);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_LT(scheduler().Now() - came_up, seconds(5));
  EXPECT_EQ(service_.calls, 1);
}

TEST_P(ControlPlaneConformance, PokingIsHarmlessWhateverACallDoes) {
  Serve();
  client_->Poke();
  EXPECT_TRUE(Announce(*client_, Within(seconds(15))).ok());
  service_.on_call = [&] { client_->Poke(); };
  EXPECT_TRUE(Announce(*client_, Within(seconds(15))).ok());
  server_->Close(Duration::zero());
  client_->Poke();
  EXPECT_FALSE(Announce(*client_, Within(seconds(15))).ok());
  EXPECT_EQ(service_.calls, 2);
}

TEST_P(ControlPlaneConformance, ATaskIsReachedAtOnceThoughItWasMissedBefore) {
  const std::string address = UnusedAddress();
  const auto client = plane().NewClient(address);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Announce(*client, Within(seconds(15))).code(), absl::StatusCode::kUnavailable);
  }
  Serve(HostPort::Parse(address)->port);
  const absl::Status status = Announce(*client, Within(seconds(15)));
  EXPECT_TRUE(status.ok()) << status;
}

// The end of things.

TEST_P(ControlPlaneConformance, AServerThatClosesLetsGoOfCallsInFlight) {
  Serve();
  Latch latch(&scheduler());
  Inbox<absl::Status> inbox(driver_.get());
  Duration took = Duration::zero();
  service_.on_call = [&] {
    scheduler().Post([&] {
      const TimePoint start = scheduler().Now();
      server_->Close(milliseconds(100));
      took = scheduler().Now() - start;
      latch.Open();
    });
    latch.Wait();
  };
  client_->Announce({}, Within(seconds(15)), inbox.Reply());
  const absl::Status status = Get(inbox);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  latch.Wait();
  EXPECT_GE(took, milliseconds(99));
  EXPECT_LT(took, seconds(5));
  server_ = nullptr;
  DestroyPlane();
  EXPECT_EQ(inbox.count(), 1U);
}

TEST_P(ControlPlaneConformance, AServerThatClosesGivesGraceToCallsInFlight) {
  if (!GetParam().has_threads) GTEST_SKIP() << "the one stack cannot close and answer at once";
  Serve();
  Latch entered(&scheduler());
  Latch latch(&scheduler());
  service_.on_call = [&] {
    entered.Open();
    latch.Wait();
  };
  service_.error = absl::NotFoundError("answered after all");
  Inbox<absl::Status> inbox(driver_.get());
  client_->Announce({}, Within(seconds(15)), inbox.Reply());
  entered.Wait();
  scheduler().PostAt(scheduler().Now() + milliseconds(100), [&] { latch.Open(); });
  const TimePoint start = scheduler().Now();
  server_->Close(seconds(15));
  EXPECT_LT(scheduler().Now() - start, seconds(10));
  EXPECT_EQ(Get(inbox), service_.error);
}

TEST_P(ControlPlaneConformance, AClosedServerIsGoneAndAnotherMayTakeItsPlace) {
  Serve();
  const int port = server_->Port();
  const auto client = client_;
  EXPECT_TRUE(Announce(*client, Within(seconds(15))).ok());
  server_->Close(seconds(1));
  EXPECT_EQ(Announce(*client, Within(seconds(15))).code(), absl::StatusCode::kUnavailable);
  server_->Close(seconds(1));
  const std::unique_ptr<ControlServer> closed = std::move(server_);
  Serve(port);
  EXPECT_TRUE(Announce(*client, Within(seconds(15), kWaitForReady)).ok());
  closed->Close(seconds(1));
  EXPECT_TRUE(Announce(*client, Within(seconds(15))).ok());
}

TEST_P(ControlPlaneConformance, ACallOutlivesItsClient) {
  Serve();
  Inbox<absl::Status> inbox(driver_.get());
  client_->Announce({}, Within(seconds(15)), inbox.Reply());
  client_ = nullptr;
  EXPECT_TRUE(Get(inbox).ok());
}

TEST_P(ControlPlaneConformance, APlaneThatGoesAnswersItsCalls) {
  const auto client = plane().NewClient(UnusedAddress());
  Inbox<absl::Status> waiting(driver_.get());
  client->Announce({}, Within(std::chrono::hours(1), kWaitForReady), waiting.Reply());
  DestroyPlane();
  EXPECT_EQ(Get(waiting).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Announce(*client, Within(seconds(15))).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(waiting.count(), 1U);
}

// Many at once.

TEST_P(ControlPlaneConformance, EveryCallIsAnsweredOnce) {
  Serve();
  service_.record = false;
  constexpr int kCalls = 200;
  std::vector<Inbox<absl::Status>> inboxes;
  for (int i = 0; i < kCalls; ++i) {
    client_->Announce({}, Within(seconds(15)), inboxes.emplace_back(driver_.get()).Reply());
  }
  for (const auto& inbox : inboxes) EXPECT_TRUE(Get(inbox).ok());
  EXPECT_EQ(service_.calls, kCalls);
  server_ = nullptr;
  DestroyPlane();
  for (const auto& inbox : inboxes) EXPECT_EQ(inbox.count(), 1U);
}

TEST_P(ControlPlaneConformance, SeveralCallsMayBlockTogether) {
  Serve();
  service_.record = false;
  constexpr int kCalls = 4;
  Latch all_in(&scheduler());
  service_.on_call = [&] {
    if (service_.calls == kCalls) all_in.Open();
    all_in.Wait();
  };
  std::vector<Inbox<absl::Status>> inboxes;
  for (int i = 0; i < kCalls; ++i) {
    client_->Announce({}, Within(seconds(15)), inboxes.emplace_back(driver_.get()).Reply());
  }
  for (const auto& inbox : inboxes) EXPECT_TRUE(Get(inbox).ok());
}

}  // namespace weir::rpc
