#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "graph/node_util.h"
#include "graph/passes.h"
#include "graph/passes_testing.h"

namespace weir::graph {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Four ps, four workers with two CPUs each; the session is worker 2's.
DeviceSet Devices() {
  const auto cluster = ClusterSpec::ParseFlag("ps=h0:1,h1:1,h2:1,h3:1;worker=h4:1,h5:1,h6:1,h7:1");
  return DeviceSet::FromCluster(cluster.value(), {"worker", 2}, 2);
}

std::string Cpu(const std::string& job, int task, int id = 0) {
  return DeviceSpec::FullCpu({job, task}, id).ToString();
}

absl::Status Place(TestGraph& graph) {
  return PlaceGraph(graph.def, Devices());
}

// One row: what is built, and where named nodes must be. An expected error instead of places.
struct Row {
  std::string name;
  std::function<void(TestGraph&)> build;
  std::map<std::string, std::string> places;
  std::string error = "";
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

class PlacerTable : public ::testing::TestWithParam<Row> {};

TEST_P(PlacerTable, Places) {
  const Row& row = GetParam();
  TestGraph graph;
  row.build(graph);
  const absl::Status status = Place(graph);
  if (!row.error.empty()) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.error));
    return;
  }
  ASSERT_TRUE(status.ok()) << status;
  for (const auto& [name, device] : row.places) {
    EXPECT_EQ(graph.node(name).device, device) << name;
  }
}

const Row kRequests[] = {
    {"FreeNodeGoesToTheSession",
     [](TestGraph& g) { g.Function("f", {g.Aten("a", {g.Const("c")})}); },
     {{"a", Cpu("worker", 2)}, {"c", Cpu("worker", 2)}, {"f", Cpu("worker", 2)}}},
    {"FreeVariableGoesToTheSession",
     [](TestGraph& g) { g.Read(g.Variable("w")); },
     {{"w", Cpu("worker", 2)}, {"w/read", Cpu("worker", 2)}}},
    {"FullRequest",
     [](TestGraph& g) { g.Aten("a", {}, "/job:ps/replica:0/task:3/device:CPU:1"); },
     {{"a", Cpu("ps", 3, 1)}}},
    {"PartialSpec",  // the first of the job, by task
     [](TestGraph& g) {
       g.Aten("a", {}, "/job:ps");
       g.Variable("w", {2}, "/job:ps");
     },
     {{"a", Cpu("ps", 0)}, {"w", Cpu("ps", 0)}}},
    {"PartialSpecOfTheSessionsJob",
     [](TestGraph& g) { g.Aten("a", {}, "/job:worker"); },
     {{"a", Cpu("worker", 2)}}},
    {"OnlyADeviceNumber",
     [](TestGraph& g) { g.Aten("a", {}, "/device:CPU:1"); },
     {{"a", Cpu("worker", 2, 1)}}},
    {"OnlyATask",  // jobs in order of their names
     [](TestGraph& g) { g.Aten("a", {}, "/task:1"); },
     {{"a", Cpu("ps", 1)}}},
    {"OldShortForm",
     [](TestGraph& g) { g.Aten("a", {}, "/job:ps/task:1/cpu:0"); },
     {{"a", Cpu("ps", 1)}}},
    {"FunctionWithThePartialRequestOfItsJob",
     [](TestGraph& g) { g.Function("f", {}, "/job:worker"); },
     {{"f", Cpu("worker", 2)}}},
    {"UnknownDevice", [](TestGraph& g) { g.Aten("in", {}, "/job:foo"); }, {}, "/job:foo"},
    {"UnknownTask",
     [](TestGraph& g) { g.Aten("in", {}, "/job:ps/task:4"); },
     {},
     "Cannot assign a device for operation 'in': was explicitly assigned to /job:ps/task:4 but "
     "available devices are [ /job:ps/replica:0/task:0/device:CPU:0, "},
    {"MalformedDeviceSpecification",
     [](TestGraph& g) { g.Aten("in", {}, "/foo:bar"); },
     {},
     "Malformed device specification '/foo:bar' of operation 'in'"},
    {"NoKernelForGpu",
     [](TestGraph& g) { g.Aten("in", {}, "/device:GPU:11"); },
     {},
     "Cannot assign a device for operation 'in': was explicitly assigned to /device:GPU:11 but "
     "available devices are [ "},
    {"FunctionElsewhere",
     [](TestGraph& g) { g.Function("f", {}, "/job:worker/task:1"); },
     {},
     "Cannot assign a device for operation 'f': was explicitly assigned to /job:worker/task:1 but "
     "available devices are [ "},
};

const Row kHandles[] = {
    {"ReferenceConnection",
     [](TestGraph& g) {
       const Edge w = g.Variable("w", {2}, "/job:ps/task:1");
       g.Read(w, "");
       g.at(g.Apply(w, g.Aten("g", {g.Read(w)}))).device = "";
     },
     {{"w", Cpu("ps", 1)},
      {"w/read", Cpu("ps", 1)},
      {"w/apply", Cpu("ps", 1)},
      {"g", Cpu("worker", 2)}}},
    {"IgnoreInfeasible",  // the variable wins
     [](TestGraph& g) {
       const Edge w = g.Variable("w", {2}, "/job:ps/task:1");
       g.at(g.Apply(w, g.Const("g"))).device = "/job:worker/task:0";
     },
     {{"w", Cpu("ps", 1)}, {"w/apply", Cpu("ps", 1)}}},
    {"MoreSpecificDestination",
     [](TestGraph& g) {
       const Edge w = g.Variable("w", {2}, "/job:ps/task:1");
       g.at(g.Apply(w, g.Const("g"))).device = "/job:ps/task:1/device:CPU:1";
     },
     {{"w", Cpu("ps", 1, 1)}, {"w/apply", Cpu("ps", 1, 1)}}},
    {"NoSourceDevice",
     [](TestGraph& g) {
       const Edge w = g.Variable("w", {2});
       g.at(g.Apply(w, g.Const("g"))).device = "/job:ps/task:3";
     },
     {{"w", Cpu("ps", 3)}, {"w/apply", Cpu("ps", 3)}}},
    {"SlotsLiveWithTheirVariable",  // C4-08: model code in a worker's scope, two variables
     [](TestGraph& g) {
       for (const char* name : {"v", "w"}) {
         const Edge handle =
             g.Variable(name, {2}, name[0] == 'v' ? "/job:ps/task:0" : "/job:ps/task:1");
         g.at(g.Apply(handle, g.Const(std::string("g_") + name, "/job:worker/task:0"))).device =
             "/job:worker/task:0";
       }
     },
     {{"v/apply", Cpu("ps", 0)}, {"w/apply", Cpu("ps", 1)}, {"g_v", Cpu("worker", 0)}}},
};

const Row kColocation[] = {
    {"ColocationGroup",
     [](TestGraph& g) {
       const Edge in = g.Aten("in", {}, "/job:ps/task:2");
       g.at(g.Aten("colocated", {in}).node).colocation = "in";
       g.Aten("foo", {in});
     },
     {{"colocated", Cpu("ps", 2)}, {"foo", Cpu("worker", 2)}}},
    {"TheFirstMayFollowTheOthers",
     [](TestGraph& g) {
       g.Aten("in", {});
       g.at(g.Aten("colocated", {}, "/job:ps/task:2").node).colocation = "in";
     },
     {{"in", Cpu("ps", 2)}}},
    {"MultipleColocationGroups",
     [](TestGraph& g) {
       g.Aten("in", {}, "/job:ps");
       g.at(g.Aten("a", {}, "/task:2").node).colocation = "in";
       g.at(g.Aten("b", {}, "/device:CPU:1").node).colocation = "a";
     },
     {{"in", Cpu("ps", 2, 1)}, {"a", Cpu("ps", 2, 1)}, {"b", Cpu("ps", 2, 1)}}},
    {"InvalidMultipleColocationGroups",
     [](TestGraph& g) {
       g.Aten("in", {}, "/job:ps/task:1");
       g.at(g.Aten("colocated", {}).node).colocation = "in";
       g.Aten("there", {}, "/job:worker/task:0");
       g.at(g.Aten("foo", {}).node).colocation = "there";
       g.at(g.Aten("both", {}).node).colocation = "colocated";
       g.node("there").colocation = "both";
     },
     {},
     "Cannot colocate nodes 'both' and 'colocated': Cannot merge devices with incompatible jobs: "
     "'/job:ps/task:1' and '/job:worker/task:0' ('there' asks for /job:worker/task:0, 'in' asks "
     "for /job:ps/task:1)"},
    {"GroupWithUnsatisfiableReferenceConnections",  // C4-08
     [](TestGraph& g) {
       const Edge v = g.Variable("v", {2}, "/job:ps/task:0");
       const Edge w = g.Variable("w", {2}, "/job:ps/task:1");
       g.Apply(v, g.Const("g"));
       g.at(g.Apply(w, g.Const("h"))).colocation = "v";
     },
     {},
     "Cannot colocate nodes 'w/apply' and 'v': Cannot merge devices with incompatible tasks: "
     "'/job:ps/task:0' and '/job:ps/task:1' ('w' asks for /job:ps/task:1, 'v' asks for "
     "/job:ps/task:0)"},
    {"UnknownColocation",
     [](TestGraph& g) { g.at(g.Aten("a", {}).node).colocation = "nobody"; },
     {},
     "Operation 'a' is colocated with 'nobody', which is not in the graph"},
    {"FunctionWithAVariableElsewhere",
     [](TestGraph& g) {
       g.Variable("w", {2}, "/job:ps/task:1");
       g.at(g.Function("f", {}).node).colocation = "w";
     },
     {},
     "Cannot assign a device for operation 'f'"},
};

const Row kHeuristics[] = {
    {"GeneratorFollowsItsConsumer",
     [](TestGraph& g) { g.Aten("a", {g.Const("c")}, "/job:ps/task:1"); },
     {{"c", Cpu("ps", 1)}}},
    {"PlaceholderFollowsItsConsumers",
     [](TestGraph& g) {
       const Edge x = g.Placeholder("x");
       g.Aten("a", {x}, "/job:worker/task:1");
       g.Aten("b", {x}, "/job:worker/task:1");
     },
     {{"x", Cpu("worker", 1)}}},
    {"GeneratorWithConsumersOnTwoDevices",
     [](TestGraph& g) {
       const Edge c = g.Const("c");
       g.Aten("a", {c}, "/job:ps/task:1");
       g.Aten("b", {c}, "/job:ps/task:2");
     },
     {{"c", Cpu("worker", 2)}}},
    {"IgnoreGeneratorHeuristicIfWrongDevice",
     [](TestGraph& g) { g.Aten("a", {g.Const("c", "/job:ps/task:0")}, "/job:ps/task:1"); },
     {{"c", Cpu("ps", 0)}}},
    {"IgnoreGeneratorHeuristicIfWrongPartialDevice",
     [](TestGraph& g) { g.Aten("a", {g.Const("c", "/device:CPU:1")}, "/job:ps/task:1"); },
     {{"c", Cpu("worker", 2, 1)}}},
    {"GeneratorFollowsItsConsumerWithinItsRequest",
     [](TestGraph& g) { g.Aten("a", {g.Const("c", "/job:ps")}, "/job:ps/task:3"); },
     {{"c", Cpu("ps", 3)}}},
    {"VariableIsNoGenerator",
     [](TestGraph& g) { g.After(g.Aten("a", {}, "/job:ps/task:1").node, g.Variable("w").node); },
     {{"w", Cpu("worker", 2)}}},
    {"GeneratorThatWaits",  // control inputs are no inputs in this sense
     [](TestGraph& g) {
       const Edge first = g.Aten("first", {});
       const Edge c = g.Const("c");
       g.After(c.node, first.node);
       g.Aten("a", {c}, "/job:ps/task:1");
     },
     {{"c", Cpu("ps", 1)}}},
    {"GradientsIsNoConsumer",
     [](TestGraph& g) {
       const Edge x = g.Const("x");
       g.Gradients("gradients", g.Aten("a", {x}, "/job:ps/task:1"), {x}, "/job:ps/task:3");
     },
     {{"x", Cpu("ps", 1)}}},
    {"MetadataColocatedWithInput",
     [](TestGraph& g) {
       g.Aten("size", {g.Aten("a", {}, "/job:ps/task:1")}, "", {}, "aten::_shape_as_tensor");
     },
     {{"size", Cpu("ps", 1)}}},
    {"MetadataWithARequest",
     [](TestGraph& g) {
       g.Aten("size", {g.Aten("a", {}, "/job:ps/task:1")}, "/job:ps/task:2", {}, "aten::numel");
     },
     {{"size", Cpu("ps", 2)}}},
    {"MetadataOfAGenerator",
     [](TestGraph& g) {
       const Edge c = g.Const("c", "/job:ps");
       g.Aten("size", {c}, "", {}, "aten::size");
     },
     {{"c", Cpu("ps", 0)}, {"size", Cpu("ps", 0)}}},
};

const auto kRowName = [](const auto& test) { return test.param.name; };
INSTANTIATE_TEST_SUITE_P(Requests, PlacerTable, ::testing::ValuesIn(kRequests), kRowName);
INSTANTIATE_TEST_SUITE_P(Handles, PlacerTable, ::testing::ValuesIn(kHandles), kRowName);
INSTANTIATE_TEST_SUITE_P(Colocation, PlacerTable, ::testing::ValuesIn(kColocation), kRowName);
INSTANTIATE_TEST_SUITE_P(Heuristics, PlacerTable, ::testing::ValuesIn(kHeuristics), kRowName);

// A hundred variables, each colocated with one of the first six, and an assignment each, colocated
// with one of the first three: three groups come of it (placer_test.cc of the original).
TEST(PlacerTest, ColocationAndReferenceConnections) {
  TestGraph graph;
  for (int i = 0; i < 100; ++i) {
    const Edge handle = graph.Variable("var_" + std::to_string(i), {2}, i == 3 ? "/job:ps" : "");
    const int apply = graph.Apply(handle, graph.Const("c_" + std::to_string(i)));
    if (i < 10) continue;
    graph.at(handle.node).colocation = "var_" + std::to_string(i % 6);
    graph.at(apply).colocation = "var_" + std::to_string(i % 3) + "/apply";
  }
  ASSERT_TRUE(Place(graph).ok());
  for (int i = 0; i < 100; ++i) {
    const std::string name = "var_" + std::to_string(i);
    EXPECT_EQ(graph.node(name).device, graph.node(name + "/apply").device);
    if (i >= 10) {
      EXPECT_EQ(graph.node(name).device, i % 3 == 0 ? Cpu("ps", 0) : Cpu("worker", 2)) << name;
    }
  }
}

TEST(PlacerTest, EmptyDeviceSet) {
  TestGraph graph;
  graph.Const("c");
  const absl::Status status = PlaceGraph(graph.def, DeviceSet());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()), "No devices are registered");
}

TEST(PlacerTest, DeviceThatExistsButHasNoKernels) {
  DeviceSet devices = Devices();
  devices.devices.push_back(DeviceSpec::Parse("/job:ps/replica:0/task:0/device:GPU:0").value());
  TestGraph graph;
  graph.Aten("a", {}, "/device:GPU:0");
  EXPECT_THAT(std::string(PlaceGraph(graph.def, devices).message()),
              HasSubstr("Cannot assign a device for operation 'a': Could not satisfy explicit "
                        "device specification '/device:GPU:0' because no supported kernel for GPU "
                        "devices is available."));
}

TEST(PlacerTest, ErrorsSayWhatThereIs) {  // C4-07
  const auto message = [](const std::string& device) {
    TestGraph graph;
    graph.Aten("a", {}, device);
    return std::string(Place(graph).message());
  };
  EXPECT_THAT(message("/job:ps/task:4"), HasSubstr("job ps has tasks 0..3."));
  EXPECT_THAT(message("/job:PS/task:0"), HasSubstr("there is no job PS, jobs are ps, worker."));
  EXPECT_THAT(message("/job:ps/task:x"), HasSubstr("'a'"));
  TestGraph function;
  function.Function("f", {}, "/job:ps/task:0");
  EXPECT_THAT(std::string(Place(function).message()),
              HasSubstr("A Function runs only in the process that made it, on worker:2."));
}

TEST(PlacerTest, SparseJobsListTheirTasks) {
  const auto cluster = ClusterSpec::ParseJson(R"({"worker": {"3": "h:1", "7": "h:2"}})");
  TestGraph graph;
  graph.Aten("a", {}, "/job:worker/task:5");
  EXPECT_THAT(
      std::string(PlaceGraph(graph.def, DeviceSet::FromCluster(*cluster, {"worker", 7})).message()),
      HasSubstr("job worker has tasks 3, 7."));
}

TEST(PlacerTest, TasksAreOrderedByNumber) {
  std::string flag = "ps=h:1";
  for (int i = 2; i <= 12; ++i) flag += ",h:" + std::to_string(i);
  DeviceSet devices =
      DeviceSet::FromCluster(ClusterSpec::ParseFlag(flag + ";worker=w:1").value(), {"worker", 0});
  std::erase_if(devices.devices,
                [](const DeviceSpec& device) { return device.job == "ps" && *device.task < 2; });
  TestGraph graph;
  graph.Aten("a", {}, "/job:ps");
  ASSERT_TRUE(PlaceGraph(graph.def, devices).ok());
  EXPECT_EQ(graph.node("a").device, Cpu("ps", 2));  // by text it would be 10
}

TEST(PlacerTest, EveryMistakeIsReportedAndNothingChanged) {
  TestGraph graph;
  graph.Aten("a", {}, "/job:ps/task:9");
  graph.Aten("b", {}, "/job:nowhere");
  graph.Aten("c", {}, "/job:ps/task:1");
  const absl::Status status = Place(graph);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("operation 'a'"), HasSubstr("operation 'b'"),
                    Not(HasSubstr("operation 'c'"))));
  EXPECT_EQ(graph.node("c").device, "/job:ps/task:1");
}

TEST(PlacerTest, LongDeviceListsAreCut) {
  DeviceSet devices;
  devices.session_task = {"worker", 0};
  for (int i = 0; i < 1000; ++i) devices.devices.push_back(DeviceSpec::FullCpu({"worker", i}));
  TestGraph graph;
  graph.Aten("a", {}, "/job:ps");
  EXPECT_THAT(std::string(PlaceGraph(graph.def, devices).message()), HasSubstr("and 936 more ]"));
}

TEST(PlacerTest, PlacingAPlacedGraphChangesNothing) {
  TestGraph graph;
  graph.Aten("a", {graph.Read(graph.Variable("w", {2}, "/job:ps/task:1")), graph.Const("c")});
  ASSERT_TRUE(Place(graph).ok());
  std::vector<std::string> devices;
  for (const Node& node : graph.def.nodes) devices.push_back(node.device);
  ASSERT_TRUE(Place(graph).ok());
  for (std::size_t n = 0; n < devices.size(); ++n) {
    EXPECT_EQ(graph.def.nodes[n].device, devices[n]);
  }
}

DeviceSet Soft() {
  DeviceSet devices = Devices();
  devices.soft_placement = true;
  return devices;
}

TEST(SoftPlacement, TypeAndNumberGiveWayToWhatTheTaskHas) {
  for (const char* request : {"/job:ps/task:3/device:GPU:0", "/job:ps/task:3/device:CPU:7"}) {
    TestGraph graph;
    graph.Aten("a", {}, request);
    EXPECT_FALSE(Place(graph).ok()) << request;
    const absl::Status status = PlaceGraph(graph.def, Soft());
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(graph.node("a").device, Cpu("ps", 3)) << request;
  }
}

TEST(SoftPlacement, WhatCanBeHadIsKept) {
  TestGraph graph;
  graph.Aten("a", {}, "/job:ps/task:3/device:CPU:1");
  ASSERT_TRUE(PlaceGraph(graph.def, Soft()).ok());
  EXPECT_EQ(graph.node("a").device, Cpu("ps", 3, 1));
}

TEST(SoftPlacement, JobAndTaskNeverGiveWay) {
  for (const char* request : {"/job:ps/task:9/device:CPU:0", "/job:chief/device:GPU:0"}) {
    TestGraph graph;
    graph.Aten("a", {}, request);
    const absl::Status status = PlaceGraph(graph.def, Soft());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("Cannot assign a device for operation 'a'"));
  }
}

TEST(SoftPlacement, ThoseWhoShareADeviceMayAskForDifferentNumbers) {
  TestGraph graph;
  graph.Aten("a", {}, "/job:ps/task:1/device:CPU:0");
  graph.Aten("b", {}, "/job:ps/task:1/device:CPU:1");
  graph.node("b").colocation = "a";
  EXPECT_FALSE(Place(graph).ok());
  const absl::Status status = PlaceGraph(graph.def, Soft());
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(graph.node("a").device, Cpu("ps", 1));
  EXPECT_EQ(graph.node("b").device, Cpu("ps", 1));
}

}  // namespace
}  // namespace weir::graph
