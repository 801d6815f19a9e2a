#include "cluster/cluster_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "cluster/cluster_testing.h"
#include "cluster/device.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

ClusterSpec Flag(std::string_view text) {
  auto spec = ClusterSpec::ParseFlag(text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.value_or(ClusterSpec());
}

ClusterSpec FromJson(std::string_view text) {
  auto spec = ClusterSpec::ParseJson(text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.value_or(ClusterSpec());
}

std::string FlagError(std::string_view text) {
  const auto spec = ClusterSpec::ParseFlag(text);
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return MessageOf(spec.status());
}

std::string JsonError(std::string_view text) {
  const auto spec = ClusterSpec::ParseJson(text);
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return MessageOf(spec.status());
}

TEST(ClusterSpecTest, ReadsAFlag) {
  const ClusterSpec spec = Flag(" worker = b:2 , [2001:db8::1]:3; ps=a:1;");
  EXPECT_THAT(spec.AllTasks(),
              ElementsAre(TaskId{"ps", 0}, TaskId{"worker", 0}, TaskId{"worker", 1}));
  EXPECT_EQ(spec.Address({"worker", 1}).value(), (HostPort{"2001:db8::1", 3}));
  EXPECT_EQ(spec.NumTasks("worker"), 2);
  EXPECT_EQ(spec.NumTasks("chief"), 0);
  EXPECT_TRUE(spec.HasJob("ps"));
  EXPECT_FALSE(spec.HasJob("chief"));
  EXPECT_EQ(spec.ToString(), "ps=a:1;worker=b:2,[2001:db8::1]:3");
}

TEST(ClusterSpecTest, ReadsSparseIndicesInAFlag) {
  const ClusterSpec spec = Flag("worker=37@b:2,1@a:1");
  EXPECT_THAT(spec.AllTasks(), ElementsAre(TaskId{"worker", 1}, TaskId{"worker", 37}));
  EXPECT_EQ(spec.ToString(), "worker=1@a:1,37@b:2");
  EXPECT_EQ(Flag("worker=1@b:2,0@a:1"), Flag("worker=a:1,b:2"));
}

TEST(ClusterSpecTest, ReadsListsAndSparseMapsOfJson) {
  EXPECT_EQ(FromJson(R"({"worker": ["b:2", "c:3"], "ps": {"0": "a:1"}})"),
            Flag("ps=a:1;worker=b:2,c:3"));
  EXPECT_EQ(FromJson(R"({"worker": {"37": "b:2", "1": "c:3"}})"), Flag("worker=1@c:3,37@b:2"));
  EXPECT_EQ(FromJson(R"({"worker": {"1": "b:2", "0": "a:1"}})"), Flag("worker=a:1,b:2"));
}

TEST(ClusterSpecTest, AJobMayHaveNoTasks) {
  const ClusterSpec spec = FromJson(R"({"ps": ["a:1"], "worker": []})");
  EXPECT_TRUE(spec.HasJob("worker"));
  EXPECT_EQ(spec.NumTasks("worker"), 0);
  EXPECT_EQ(spec, FromJson(R"({"ps": ["a:1"], "worker": {}})"));
  EXPECT_EQ(spec, Flag(spec.ToString()));
  EXPECT_THAT(MessageOf(spec.Address({"worker", 0}).status()),
              HasSubstr("job worker has no tasks"));
}

TEST(ClusterSpecTest, AddressOfAMissingTaskNamesWhatThereIs) {
  const ClusterSpec spec = Flag("ps=a:1,a:2,a:3,a:4;worker=1@b:1,3@b:3,4@b:4;chief=7@c:1");
  const auto missing = [&](const TaskId& task) {
    const auto address = spec.Address(task);
    EXPECT_EQ(address.status().code(), absl::StatusCode::kNotFound);
    return MessageOf(address.status());
  };
  EXPECT_THAT(missing({"ps", 4}), AllOf(HasSubstr("ps:4"), HasSubstr("job ps has tasks 0..3")));
  EXPECT_THAT(missing({"ps", -1}), HasSubstr("job ps has tasks 0..3"));
  EXPECT_THAT(missing({"worker", 2}), HasSubstr("job worker has tasks 1, 3..4"));
  EXPECT_THAT(missing({"chief", 0}), HasSubstr("job chief has tasks 7..7"));
  EXPECT_THAT(missing({"PS", 0}), AllOf(HasSubstr("PS:0"), HasSubstr("chief, ps, worker")));
  EXPECT_THAT(MessageOf(ClusterSpec().Address({"ps", 0}).status()), HasSubstr("no jobs"));
}

// The strings of a report about devices that match nothing: a wrong one is known before any step.
TEST(ClusterSpecTest, DeviceStringsAgainstACluster) {  // C4-07
  const ClusterSpec spec = Flag("ps=a:1,a:2,a:3,a:4");
  const auto address = [&](std::string_view text) -> absl::StatusOr<HostPort> {
    const auto device = DeviceSpec::Parse(text);
    if (!device.ok()) return device.status();
    return spec.Address(device->task_id());
  };
  EXPECT_THAT(MessageOf(address("/job:ps/task:4").status()), HasSubstr("job ps has tasks 0..3"));
  EXPECT_THAT(MessageOf(address("/job:PS/task:0").status()), HasSubstr("its jobs are ps"));
  for (const char* text : {"/jobs:ps/task:0", "/job:ps/task:x", "job:ps"}) {
    EXPECT_EQ(address(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(address("/job:ps/task:1/cpu:0").value(), (HostPort{"a", 2}));
  EXPECT_EQ(DeviceSpec::Parse("/job:ps/task:1/cpu:0").value(),
            DeviceSpec::Parse("/job:ps/task:1/device:CPU:0").value());
  EXPECT_TRUE(spec.HasJob(*DeviceSpec::Parse("/job:ps").value().job));
}

TEST(ClusterSpecTest, ALongSparseJobIsDescribedShortly) {
  std::string text = "ps=";
  for (int i = 0; i < 1000; ++i) {
    text += std::to_string(2 * i) + "@a:" + std::to_string(i + 1) + (i < 999 ? "," : "");
  }
  const std::string message = MessageOf(Flag(text).Address({"ps", 1}).status());
  EXPECT_THAT(message, AllOf(HasSubstr("0, 2, 4"), HasSubstr("1998")));
  EXPECT_LT(message.size(), 200U);
}

TEST(ClusterSpecTest, AllErrorsOfAFlagComeInOneMessage) {
  const std::string message =
      FlagError("ps=a:1,,a:1,b:x;2nd=c:1;worker=h:0;worker=d:1;chief;eval=1@e:1,f:1,x@g:1,1@h:1");
  EXPECT_EQ(
      message,
      "ps[1]: empty address; "
      "ps[3]: bad address \"b:x\": the port is no number of 0..65535 (expected host:port, IPv6 "
      "needs brackets: [::1]:port); "
      "bad job name \"2nd\" (expected a letter, then letters, digits, _); "
      "job worker is given twice; "
      "expected job=host:port,... but found \"chief\"; "
      "job eval gives an index to some tasks only: \"f:1\" has none; "
      "bad task index \"x\" in job eval; "
      "eval[1] is given twice; "
      "worker[0]: port 0 in h:0: the others could not know which port the system picks; "
      "address a:1 is given to ps:0 and ps:2");
}

TEST(ClusterSpecTest, AnUnsetVariableInAFlagIsAnError) {
  EXPECT_EQ(FlagError(""), "the cluster has no jobs");
  EXPECT_EQ(FlagError(" ; "), "the cluster has no jobs");
  EXPECT_EQ(FlagError("ps=;worker=a:1"), "ps[0]: empty address");
}

TEST(ClusterSpecTest, AllErrorsOfJsonComeInOneMessage) {
  EXPECT_EQ(JsonError(R"({"a": [1, null], "b": "h:1", "c-d": ["h:2"], "e": {"x": "h:3"},
                          "f": {"1": "h:4", "01": "h:5"}, "f": ["h:0"]})"),
            "key \"f\" is given twice; "
            "a[0]: expected an address, found number; "
            "a[1]: expected an address, found null; "
            "job b: expected a list or a map of addresses, found string; "
            "bad job name \"c-d\" (expected a letter, then letters, digits, _); "
            "bad task index \"x\" in job e; "
            "f[0]: port 0 in h:0: the others could not know which port the system picks");
  EXPECT_EQ(JsonError(R"({"f": {"1": "h:4", "01": "h:5"}})"), "f[1] is given twice");
  EXPECT_THAT(JsonError("{}"), HasSubstr("no jobs"));
  EXPECT_THAT(JsonError("[]"), HasSubstr("expected an object of jobs, found array"));
  EXPECT_THAT(JsonError("{\"ps\": [\"h:1\"]"), HasSubstr("not JSON"));
  EXPECT_THAT(JsonError(""), HasSubstr("not JSON"));
}

TEST(ClusterSpecTest, OneAddressForTwoTasksIsRefused) {
  EXPECT_EQ(FlagError("ps=a:1,a:1;worker=A:1"),
            "address a:1 is given to ps:0 and ps:1 and worker:0");
  EXPECT_THAT(FlagError("ps=[::1]:1;worker=[0:0::1]:1"), HasSubstr("ps:0 and worker:0"));
  EXPECT_TRUE(ClusterSpec::ParseFlag("ps=a:1,a:2,b:1").ok());
}

TEST(ClusterSpecTest, PortZeroIsRefusedInAFixedList) {
  EXPECT_EQ(FlagError("ps=host:0,host:0"),
            "ps[0]: port 0 in host:0: the others could not know which port the system picks; "
            "ps[1]: port 0 in host:0: the others could not know which port the system picks");
}

// Handed to another machine, a loopback address makes a task talk to itself.
TEST(ClusterSpecTest, LoopbackAmongOtherMachinesIsRefused) {  // C1-02
  EXPECT_THAT(JsonError(R"({"worker": ["localhost:2222", "127.0.0.3:2223"]})"),
              AllOf(HasSubstr("worker[0]: localhost:2222"), HasSubstr("worker[1]"),
                    HasSubstr("127.0.0.3:2223")));
  EXPECT_THAT(FlagError("worker=localhost:1,10.0.0.2:1"),
              AllOf(HasSubstr("worker[0]: localhost:1"), Not(HasSubstr("worker[1]:"))));
  EXPECT_THAT(FlagError("ps=node-1:1;worker=127.0.0.1:1,[::1]:2,127.0.0.2:3"),
              AllOf(HasSubstr("worker[0]: "), HasSubstr("worker[1]: "), HasSubstr("worker[2]: ")));
  for (const char* one_machine : {
           "ps=localhost:1;worker=localhost:2",
           "ps=localhost:1;worker=127.0.0.1:2,[::1]:3",
           "ps=127.0.0.1:1;worker=127.0.0.2:1,127.0.0.3:1",
           "ps=node-1:1;worker=10.0.0.1:1",
       }) {
    EXPECT_TRUE(ClusterSpec::ParseFlag(one_machine).ok()) << one_machine;
  }
}

TEST(ClusterSpecTest, IdTellsClustersApart) {
  const ClusterSpec spec = Flag("ps=a:1;worker=b:2");
  EXPECT_EQ(spec.Id("job"), FromJson(R"({"worker": ["b:2"], "ps": ["a:1"]})").Id("job"));
  const std::set<std::uint64_t> ids = {
      spec.Id("job"),
      spec.Id(""),
      spec.Id("job2"),
      Flag("ps=a:1;worker=b:3").Id("job"),
      Flag("ps=a:1;worker=1@b:2").Id("job"),
      Flag("ps=a:1;workers=b:2").Id("job"),
      Flag("ps=a:1;worker=b:2;chief=[]").Id("job"),
      ClusterSpec().Id("job"),
  };
  EXPECT_EQ(ids.size(), 8U);
  EXPECT_FALSE(ids.contains(0));
}

// Tasks of different builds must agree, so the number itself is fixed.
TEST(ClusterSpecTest, IdIsTheFirst64BitsOfTheHash) {
  const std::string text("job\0ps=a:1;worker=b:2", 21);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  ASSERT_EQ(EVP_Digest(text.data(), text.size(), digest, &length, EVP_sha256(), nullptr), 1);
  std::uint64_t expected = 0;
  for (int i = 0; i < 8; ++i) expected = expected * 256 + digest[i];
  EXPECT_EQ(Flag("ps=a:1;worker=b:2").Id("job"), expected);
}

TEST(NewIncarnationTest, IsNonZeroAndFresh) {
  std::set<std::uint64_t> drawn;
  for (int i = 0; i < 100; ++i) drawn.insert(NewIncarnation());
  EXPECT_EQ(drawn.size(), 100U);
  EXPECT_FALSE(drawn.contains(0));
}

// A text of a valid spec: some jobs, dense, sparse or without tasks, every task with its own port.
std::string AnySpecText() {
  std::string text;
  int port = 1;
  for (const std::string job : {"worker", "Chief", "ps", "a_1"}) {
    if (!text.empty() && *rc::gen::arbitrary<bool>()) continue;
    text += job + "=";
    const std::size_t empty_size = text.size();
    for (int index = 0; index < 5; ++index) {
      if (*rc::gen::arbitrary<bool>()) continue;
      if (text.size() > empty_size) text += ",";
      text += std::to_string(index) + "@node:" + std::to_string(port++);
    }
    text += text.size() == empty_size ? "[];" : ";";
  }
  return text;
}

RC_GTEST_PROP(ClusterSpecPropertyTest, ParsesWhatItPrints, ()) {
  const auto spec = ClusterSpec::ParseFlag(AnySpecText());
  RC_ASSERT(spec.ok());
  const auto again = ClusterSpec::ParseFlag(spec->ToString());
  RC_ASSERT(again.ok());
  RC_ASSERT(*again == *spec);
  RC_ASSERT(again->ToString() == spec->ToString());
  for (const TaskId& task : spec->AllTasks()) RC_ASSERT(spec->Address(task).ok());
}

RC_GTEST_PROP(ClusterSpecPropertyTest, AnyTextParsesOrIsRefused, ()) {
  const auto piece = rc::gen::oneOf(
      rc::gen::arbitrary<std::string>(),
      rc::gen::element<std::string>("ps", "worker", "=", ",", ";", "@", "[]", "1", "h:1", "{", "}",
                                    "[", "]", ":", "\"", "\"ps\":[\"h:1\"]"));
  std::string text;
  for (const std::string& part : *rc::gen::container<std::vector<std::string>>(piece)) text += part;
  for (const auto& spec : {ClusterSpec::ParseFlag(text), ClusterSpec::ParseJson(text)}) {
    if (spec.ok()) {
      RC_ASSERT(ClusterSpec::ParseFlag(spec->ToString()).value() == *spec);
    } else {
      RC_ASSERT(spec.status().code() == absl::StatusCode::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace weir
