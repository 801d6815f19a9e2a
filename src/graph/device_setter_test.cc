#include "weir/device_setter.h"

#include <gtest/gtest.h>

#include <map>

#include "cluster/device.h"

namespace weir {
namespace {

// What DeviceScope does: device functions run from the innermost scope outwards, each on what came
// so far.
struct Scopes {
  std::vector<DeviceFunction> functions;  // outermost first

  std::string Device(const std::string& op, const std::string& name,
                     std::vector<std::int64_t> shape = {2},
                     const std::string& requested = "") const {
    Node node;
    node.op = op;
    node.name = name;
    node.device = requested;
    node.attrs = {{"dtype", at::kFloat}, {"shape", shape}};
    for (auto function = functions.rbegin(); function != functions.rend(); ++function) {
      node.device = (*function)(node);
    }
    return node.device;
  }
};

ReplicaDeviceSetterOptions RoundRobin() {
  return {.ps_tasks = 2, .strategy = PlacementStrategy::kRoundRobin};
}

// One op that is made, with the device its inner scopes ask for, and the device it gets.
struct Made {
  std::string op;
  std::string requested;
  std::string expected;
};

struct Row {
  std::string name;
  ReplicaDeviceSetterOptions options;
  std::vector<Made> made;
};

class SetterTable : public ::testing::TestWithParam<Row> {};

TEST_P(SetterTable, GivesDevices) {
  const Scopes scopes{{ReplicaDeviceSetter(GetParam().options)}};
  int count = 0;
  for (const Made& made : GetParam().made) {
    const std::string name = made.op + "_" + std::to_string(count++);
    EXPECT_EQ(scopes.Device(made.op, name, {2}, made.requested), made.expected) << name;
  }
}

ReplicaDeviceSetterOptions With(void (*change)(ReplicaDeviceSetterOptions&)) {
  ReplicaDeviceSetterOptions options = RoundRobin();
  change(options);
  return options;
}

// python/training/device_setter_test.py of the original, whose default is round robin.
const Row kOriginal[] = {
    {"CPUOverride",
     RoundRobin(),
     {{"Variable", "/device:CPU:0", "/job:ps/task:0/device:CPU:0"},
      {"Variable", "", "/job:ps/task:1"},
      {"Aten", "/device:CPU:0", "/job:worker/device:CPU:0"}}},
    {"PS2Tasks",
     RoundRobin(),
     {{"Variable", "", "/job:ps/task:0"},
      {"Variable", "", "/job:ps/task:1"},
      {"Aten", "", "/job:worker"}}},
    {"PS2TasksPinVariableToJob",
     RoundRobin(),
     {{"Variable", "", "/job:ps/task:0"},
      {"Variable", "/job:moon", "/job:moon"},
      {"Variable", "/job:ps", "/job:ps/task:1"},  // an explicit ps job gets a task
      {"Aten", "", "/job:worker"}}},
    {"PS2TasksUseCpuForPS",
     With([](auto& options) {
       options.ps_tasks = 1;
       options.ps_device = "/cpu:0";
     }),
     {{"Variable", "", "/device:CPU:0"},
      {"Variable", "/job:moon", "/job:moon/device:CPU:0"},
      {"Aten", "", "/job:worker"}}},
    {"PS2TasksNoMerging",
     With([](auto& options) { options.merge_devices = false; }),
     {{"Variable", "", "/job:ps/task:0"},
      {"Variable", "/job:ps", "/job:ps"},
      {"Aten", "", "/job:worker"}}},
    {"PS2TasksWithDevice",
     With([](auto& options) {
       options.ps_device = "/job:moon";
       options.worker_device = "/job:sun";
     }),
     {{"Variable", "", "/job:moon/task:0"},
      {"Variable", "", "/job:moon/task:1"},
      {"Aten", "", "/job:sun"}}},
    {"PS2TasksWithCPUConstraint",
     With([](auto& options) {
       options.ps_device = "/job:moon/cpu:0";
       options.worker_device = "/job:sun";
     }),
     {{"Variable", "", "/job:moon/task:0/device:CPU:0"},
      {"Variable", "", "/job:moon/task:1/device:CPU:0"},
      {"Aten", "", "/job:sun"}}},
};

// What the original's other tests leave open, and where Weir's graphs differ.
const Row kOurs[] = {
    {"NoPsTasks",
     With([](auto& options) { options.ps_tasks = 0; }),
     {{"Variable", "", ""}, {"Aten", "/job:moon", "/job:moon"}}},
    {"RoundRobinWraps",
     RoundRobin(),
     {{"Variable", "", "/job:ps/task:0"},
      {"Variable", "", "/job:ps/task:1"},
      {"Variable", "", "/job:ps/task:0"}}},
    {"WhatUsesAHandleFollowsItsVariable",
     RoundRobin(),
     {{"Read", "", ""},
      {"Apply", "", ""},
      {"Assign", "/job:worker/task:1", "/job:worker/task:1"},
      {"Variable", "", "/job:ps/task:0"}}},
    {"AnExplicitTaskStays",
     RoundRobin(),
     {{"Variable", "/job:ps/task:1", "/job:ps/task:1"}, {"Aten", "/task:3", "/job:worker/task:3"}}},
    {"EmptyPsDevice",
     With([](auto& options) { options.ps_device = ""; }),
     {{"Variable", "", "/job:worker"}}},
    {"BadDevicesGoOnToTheGraph",
     With([](auto& options) {
       options.ps_device = "/job";
       options.worker_device = "worker";
     }),
     {{"Variable", "", "/job"}, {"Aten", "", "worker"}, {"Aten", "cpu", "cpu"}}},
};

INSTANTIATE_TEST_SUITE_P(Original, SetterTable, ::testing::ValuesIn(kOriginal),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Ours, SetterTable, ::testing::ValuesIn(kOurs),
                         [](const auto& test) { return test.param.name; });

// The ps tasks of variables u, v, w, x with the shapes of the original's contrib test.
std::vector<int> Deal(const ReplicaDeviceSetterOptions& options,
                      const std::vector<std::vector<std::int64_t>>& shapes) {
  const Scopes scopes{{ReplicaDeviceSetter(options)}};
  std::vector<int> tasks;
  for (const auto& shape : shapes) {
    const std::string name =
        tasks.empty() ? "Variable" : "Variable_" + std::to_string(tasks.size());
    tasks.push_back(*DeviceSpec::Parse(scopes.Device("Variable", name, shape))->task);
  }
  return tasks;
}

// contrib/training/python/training/device_setter_test.py of the original.
TEST(PlacementStrategyTest, Random) {
  const ReplicaDeviceSetterOptions options{.ps_tasks = 2, .strategy = PlacementStrategy::kRandom};
  EXPECT_EQ(Deal(options, {{2, 2}, {2, 1}, {2, 2}, {1, 3}}), (std::vector<int>{1, 0, 1, 1}));
}

TEST(PlacementStrategyTest, RandomHandlesUnicode) {
  const Scopes scopes{
      {ReplicaDeviceSetter({.ps_tasks = 2, .strategy = PlacementStrategy::kRandom})}};
  EXPECT_EQ(scopes.Device("Variable", "A unicode \u018e string \u00f1"), "/job:ps/task:1");
}

TEST(PlacementStrategyTest, UniformLoadEqualsRoundRobin) {
  EXPECT_EQ(Deal({.ps_tasks = 2}, {{2}, {2}, {2}, {2}}), (std::vector<int>{0, 1, 0, 1}));
}

TEST(PlacementStrategyTest, ByteSizes) {
  // 16, 8, 16 and 12 bytes.
  EXPECT_EQ(Deal({.ps_tasks = 2}, {{2, 2}, {2, 1}, {2, 2}, {1, 3}}),
            (std::vector<int>{0, 1, 1, 0}));
}

TEST(PlacementStrategyTest, AScalarIsDealtToo) {
  EXPECT_EQ(Deal({.ps_tasks = 2}, {{}, {}}), (std::vector<int>{0, 1}));
}

TEST(PlacementStrategyTest, GreedyCountsWhatIsPinned) {
  const Scopes scopes{{ReplicaDeviceSetter({.ps_tasks = 2})}};
  EXPECT_EQ(scopes.Device("Variable", "big", {100}, "/job:ps/task:0"), "/job:ps/task:0");
  EXPECT_EQ(scopes.Device("Variable", "a", {60}), "/job:ps/task:1");
  EXPECT_EQ(scopes.Device("Variable", "b", {60}), "/job:ps/task:1");
  EXPECT_EQ(scopes.Device("Variable", "c", {60}), "/job:ps/task:0");
}

TEST(PlacementStrategyTest, HugeShapesDoNotOverflow) {
  const std::int64_t huge = std::int64_t{1} << 62;
  EXPECT_EQ(Deal({.ps_tasks = 2}, {{huge, huge}, {huge, huge}, {2}}), (std::vector<int>{0, 1, 0}));
}

TEST(PlacementStrategyTest, EachSetterDealsAnew) {
  const ReplicaDeviceSetterOptions options = RoundRobin();
  EXPECT_EQ(Deal(options, {{2}}), Deal(options, {{2}}));
}

TEST(PlacementStrategyTest, CopiesOfASetterDealTogether) {
  const DeviceFunction setter = ReplicaDeviceSetter(RoundRobin());
  const Scopes first{{setter}};
  const Scopes second{{setter}};
  EXPECT_EQ(first.Device("Variable", "a"), "/job:ps/task:0");
  EXPECT_EQ(second.Device("Variable", "b"), "/job:ps/task:1");
}

}  // namespace
}  // namespace weir
