#include "cluster/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/cluster_testing.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

std::string MessageOf(const absl::Status& status) {
  return std::string(status.message());
}

DeviceSpec Device(std::string_view text) {
  auto spec = DeviceSpec::Parse(text);
  EXPECT_TRUE(spec.ok()) << text << ": " << spec.status();
  return spec.value_or(DeviceSpec{});
}

struct TextPair {
  const char* text;
  const char* canonical;
};

// The rows of the original's device_name_utils_test.cc, device_spec_test.py and device_test.py that
// concern parsing and printing, and the corners that those leave open.
TEST(DeviceSpecTest, ParsesAndPrintsCanonically) {
  const TextPair rows[] = {
      {"", ""},
      {"/", ""},
      {"/job:ps", "/job:ps"},
      {"/job:foo_bar/replica:1/task:2/gpu:3", "/job:foo_bar/replica:1/task:2/device:GPU:3"},
      {"/job:foo_bar/replica:1/task:2/device:GPU:3", "/job:foo_bar/replica:1/task:2/device:GPU:3"},
      // Any order.
      {"/replica:0/job:foo", "/job:foo/replica:0"},
      {"/device:GPU:0/task:0/replica:0/job:foo", "/job:foo/replica:0/task:0/device:GPU:0"},
      {"/gpu:*/job:*/replica:4", "/replica:4/device:GPU:*"},
      {"/job:foo/cpu:1/task:2/replica:1", "/job:foo/replica:1/task:2/device:CPU:1"},
      // Repetition: the last counts, `*` included.
      {"/job:a/job:b", "/job:b"},
      {"/task:1/task:2/replica:3/replica:3", "/replica:3/task:2"},
      {"/job:a/job:*", ""},
      {"/task:1/task:*", ""},
      // `*` is the same as leaving the field out.
      {"/job:*", ""},
      {"/job:*/replica:*/task:*/device:*", ""},
      {"/device:*:*", ""},
      {"/job:*/replica:4/device:GPU:*", "/replica:4/device:GPU:*"},
      {"/job:*/device:GPU/replica:4", "/replica:4/device:GPU:*"},
      {"/device:*:3", "/device:*:3"},
      {"/device:*/cpu:1", "/device:CPU:1"},
      // The old short forms, with and without an index.
      {"/cpu:0", "/device:CPU:0"},
      {"/CPU:0", "/device:CPU:0"},
      {"/gpu:2", "/device:GPU:2"},
      {"/GPU:2", "/device:GPU:2"},
      {"/cpu", "/device:CPU:*"},
      {"/CPU", "/device:CPU:*"},
      {"/gpu", "/device:GPU:*"},
      {"/GPU:*", "/device:GPU:*"},
      {"/replica:1/task:0/cpu:0", "/replica:1/task:0/device:CPU:0"},
      // Types: cpu and gpu become upper case, others stay as they are.
      {"/device:cpu:0", "/device:CPU:0"},
      {"/device:gpu", "/device:GPU:*"},
      {"/job:*/replica:4/device:myspecialdevice:13", "/replica:4/device:myspecialdevice:13"},
      {"/job:muu/task:1/device:MyFunnyDevice:2", "/job:muu/task:1/device:MyFunnyDevice:2"},
      // Job names are case sensitive; numbers may have leading zeros.
      {"/job:PS/task:0", "/job:PS/task:0"},
      {"/task:007", "/task:7"},
      {"/task:2147483647", "/task:2147483647"},
  };
  for (const auto& [text, canonical] : rows) {
    const auto spec = DeviceSpec::Parse(text);
    ASSERT_TRUE(spec.ok()) << text << ": " << spec.status();
    EXPECT_EQ(spec->ToString(), canonical) << text;
  }
}

TEST(DeviceSpecTest, SetsExactlyTheFieldsThatAreGiven) {
  EXPECT_EQ(Device("/job:foo/replica:1/task:2/gpu:3"),
            (DeviceSpec{.job = "foo", .replica = 1, .task = 2, .type = "GPU", .id = 3}));
  EXPECT_EQ(Device("/job:*/replica:4/gpu:5"),
            (DeviceSpec{.job = {}, .replica = 4, .task = {}, .type = "GPU", .id = 5}));
  EXPECT_EQ(Device("/"), DeviceSpec{});
  EXPECT_EQ(Device("/job:ps/task:1/cpu:0"), Device("/job:ps/task:1/device:CPU:0"));
}

struct BadText {
  const char* text;
  const char* expected;  // what the message says was expected
  int column;
};

TEST(DeviceSpecTest, RefusesAndSaysWhatWasExpectedWhere) {
  const BadText rows[] = {
      {"foobar", "\"/\"", 1},
      {"job:ps", "\"/\"", 1},
      {" /job:ps", "\"/\"", 1},
      {"//job:ps", "one of job:", 2},
      {"/job:ps/", "one of job:", 9},
      {"/job:foo/replica:1/task:2/gpu:3/extra", "one of job:", 33},
      {"/job:foo/replica:1/task:2/bar:3", "one of job:", 27},
      {"/jobs:ps/task:0", "one of job:", 2},
      {"/barcpugpu:muu/baz:2", "one of job:", 2},
      {"/Job:ps", "one of job:", 2},
      {"/Cpu:0", "one of job:", 2},
      {"/tpu:0", "one of job:", 2},
      {"/job", "\":\" after job", 2},
      {"/task/cpu:0", "\":\" after task", 2},
      {"/device", "\":\" after device", 2},
      {"/job:", "a job name", 6},
      {"/job:123/replica:1/task:2/gpu:3", "a job name", 6},
      {"/job:_ps", "a job name", 6},
      {"/job:p-s", "a job name", 6},
      {"/job:*ps", "a job name", 6},
      {"/job:ps:0", "a job name", 6},
      {"/job:foo/replica:-1/task:2/gpu:3", "a replica number or *", 18},
      {"/job:foo/replica:1/task:-2/gpu:3", "a task number or *", 25},
      {"/job:j/replica:foo", "a replica number or *", 16},
      {"/job:ps/task:x", "a task number or *", 14},
      {"/task:", "a task number or *", 7},
      {"/task:+1", "a task number or *", 7},
      {"/task:1.5", "a task number or *", 7},
      {"/task:2147483648", "a task number or *", 7},
      {"/task:99999999999999999999", "a task number or *", 7},
      {"/cpu:", "a device number or *", 6},
      {"/cpu:x", "a device number or *", 6},
      {"/cpu:0:1", "a device number or *", 6},
      {"/device:gpu:", "a device number or *", 13},
      {"/device:CPU:-1", "a device number or *", 13},
      {"/device:CPU:0:0", "a device number or *", 13},
      {"/device:", "a device type or *", 9},
      {"/device::0", "a device type or *", 9},
      {"/device:9:0", "a device type or *", 9},
      {"/device:C-PU:0", "a device type or *", 9},
      {"/cpu:0/device:GPU:2", "only one device type", 8},
      {"/job:muu/device:GPU:2/cpu:0", "only one device type", 23},
      {"/device:CPU:0/device:CPU:0", "only one device type", 15},
      {"/cpu/gpu", "only one device type", 6},
  };
  for (const auto& [text, expected, column] : rows) {
    const auto spec = DeviceSpec::Parse(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << text;
    const std::string message = MessageOf(spec.status());
    EXPECT_THAT(message, HasSubstr(absl::StrCat("device \"", text, "\"")));
    EXPECT_THAT(message, HasSubstr(absl::StrCat("expected ", expected))) << text;
    EXPECT_THAT(message, HasSubstr(absl::StrCat("at column ", column, ","))) << text;
  }
}

TEST(DeviceSpecTest, FullCpuSetsEveryField) {
  EXPECT_EQ(DeviceSpec::FullCpu({"worker", 7}).ToString(),
            "/job:worker/replica:0/task:7/device:CPU:0");
  EXPECT_EQ(DeviceSpec::FullCpu({"ps", 0}, 2).id, 2);
}

TEST(DeviceSpecTest, TaskNeedsJobAndIndex) {
  EXPECT_TRUE(Device("/job:ps/task:1").has_task());
  EXPECT_EQ(Device("/job:ps/task:1").task_id(), (TaskId{"ps", 1}));
  EXPECT_FALSE(Device("/job:ps").has_task());
  EXPECT_FALSE(Device("/task:1").has_task());
}

struct Merge {
  const char* a;
  const char* b;
  const char* merged;
};

TEST(MergeScopesTest, InnerWinsFieldByField) {
  const Merge rows[] = {
      {"", "", ""},
      {"/job:ps", "", "/job:ps"},
      {"", "/job:ps", "/job:ps"},
      {"/device:GPU:0", "/job:worker", "/job:worker/device:GPU:0"},
      {"/job:worker/device:GPU:0", "/device:CPU:0", "/job:worker/device:CPU:0"},
      {"/job:worker/device:CPU:0", "/job:ps", "/job:ps/device:CPU:0"},
      {"/job:foo/replica:0", "/task:1/device:GPU:2", "/job:foo/replica:0/task:1/device:GPU:2"},
      {"/task:1/cpu:0", "/job:boo/device:GPU:0", "/job:boo/task:1/device:GPU:0"},
      {"/job:boo/task:1/device:GPU:0", "/job:muu/cpu:2", "/job:muu/task:1/device:CPU:2"},
      {"/job:muu/cpu:2", "/job:muu/device:MyFunnyDevice:2", "/job:muu/device:MyFunnyDevice:2"},
      {"/job:a/replica:1/task:1", "/replica:2/task:2", "/job:a/replica:2/task:2"},
      // Type and id are two fields: an index survives a change of type.
      {"/cpu:1", "/gpu", "/device:GPU:1"},
      {"/cpu:1", "/gpu:*", "/device:GPU:1"},
  };
  for (const auto& [outer, inner, merged] : rows) {
    EXPECT_EQ(MergeScopes(Device(outer), Device(inner)).ToString(), Device(merged).ToString())
        << outer << " around " << inner;
  }
}

void ExpectMerged(const Merge& row, bool soft) {
  for (const auto& [a, b] : {std::pair(row.a, row.b), std::pair(row.b, row.a)}) {
    const auto merged = MergeRequests(Device(a), Device(b), soft);
    ASSERT_TRUE(merged.ok()) << a << " and " << b << ": " << merged.status();
    EXPECT_EQ(*merged, Device(row.merged)) << a << " and " << b;
  }
}

TEST(MergeRequestsTest, JoinsWhatDoesNotConflict) {
  const Merge rows[] = {
      {"", "", ""},
      {"/job:foo/replica:1/task:2/cpu:1", "/job:foo/replica:1/task:2/cpu:1",
       "/job:foo/replica:1/task:2/cpu:1"},
      {"", "/job:foo", "/job:foo"},
      {"", "/replica:2", "/replica:2"},
      {"", "/task:7", "/task:7"},
      {"", "/gpu:1", "/gpu:1"},
      {"/job:foo", "/task:7", "/job:foo/task:7"},
      {"/job:foo", "/gpu:1", "/job:foo/gpu:1"},
      {"/job:foo/replica:0", "/replica:0/task:1", "/job:foo/replica:0/task:1"},
      {"", "/gpu:*", "/gpu:*"},
      {"/gpu:*", "/gpu:*", "/gpu:*"},
      {"/gpu:1", "/gpu:*", "/gpu:1"},
  };
  for (const Merge& row : rows) {
    ExpectMerged(row, /*soft=*/false);
    ExpectMerged(row, /*soft=*/true);
  }
}

TEST(MergeRequestsTest, ConflictsAreErrors) {
  const Merge rows[] = {
      {"/job:foo", "/job:bar", "incompatible jobs"},
      {"/replica:0", "/replica:1", "incompatible replicas"},
      {"/task:0", "/task:1", "incompatible tasks"},
      {"/gpu:*", "/cpu:*", "incompatible types"},
      {"/gpu:0", "/gpu:1", "incompatible ids"},
      {"/job:ps/gpu:0", "/job:worker/cpu:1", "incompatible jobs"},
  };
  for (const auto& [a, b, text] : rows) {
    const auto merged = MergeRequests(Device(a), Device(b));
    ASSERT_FALSE(merged.ok()) << a << " and " << b;
    EXPECT_EQ(merged.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(MessageOf(merged.status()), HasSubstr(text));
    EXPECT_THAT(MessageOf(merged.status()),
                HasSubstr(absl::StrCat("'", Device(a).ToString(), "'")));
    EXPECT_THAT(MessageOf(merged.status()),
                HasSubstr(absl::StrCat("'", Device(b).ToString(), "'")));
  }
}

TEST(MergeRequestsTest, SoftDropsOnlyTypeAndId) {
  const Merge rows[] = {
      {"/gpu:*", "/cpu:1", ""},
      {"/cpu:*", "/gpu:1", ""},
      {"/cpu:1", "/gpu:1", ""},
      {"/gpu:1", "/gpu:2", "/gpu:*"},
      {"/job:ps/gpu:1", "/task:2/cpu:2", "/job:ps/task:2"},
  };
  for (const Merge& row : rows) ExpectMerged(row, /*soft=*/true);
  const Merge conflicts[] = {
      {"/job:a", "/job:b", ""}, {"/replica:1", "/replica:2", ""}, {"/task:1", "/task:2", ""}};
  for (const auto& [x, y, unused] : conflicts) {
    const auto merged = MergeRequests(Device(x), Device(y), /*soft=*/true);
    EXPECT_EQ(merged.status().code(), absl::StatusCode::kInvalidArgument) << x << " and " << y;
  }
}

struct MatchRow {
  const char* request;
  const char* device;
  bool matches;
};

TEST(MatchesTest, FieldsLeftOutMatchAnything) {
  const MatchRow rows[] = {
      {"", "/job:work/replica:0/task:2/gpu:3", true},
      {"/job:*", "/job:work/replica:0/task:2/gpu:3", true},
      {"/job:*/replica:*/task:*", "/job:work/replica:0/task:2/gpu:3", true},
      {"/job:*/replica:0/gpu:*", "/job:work/replica:0/task:2/gpu:3", true},
      {"/gpu:*", "/job:worker/replica:0/task:2/gpu:3", true},
      {"/device:*:3", "/job:worker/replica:0/task:2/gpu:3", true},
      {"/job:ps", "/job:ps/replica:0/task:3/cpu:0", true},
      {"/job:ps/task:3/cpu", "/job:ps/replica:0/task:3/cpu:0", true},
      {"/cpu:*", "/job:worker/replica:0/task:2/gpu:3", false},
      {"/gpu:2", "/job:worker/replica:0/task:2/gpu:1", false},
      {"/job:ps", "/job:worker/replica:0/task:2/cpu:0", false},
      {"/job:PS", "/job:ps/replica:0/task:2/cpu:0", false},
      {"/task:1", "/job:ps/replica:0/task:2/cpu:0", false},
      // A replica left out is replica 0, on either side.
      {"/job:ps", "/job:ps/replica:1/task:3/cpu:0", false},
      {"/replica:1", "/job:ps/replica:1/task:3/cpu:0", true},
      {"/replica:1", "/job:ps/replica:0/task:3/cpu:0", false},
  };
  for (const auto& [request, device, matches] : rows) {
    EXPECT_EQ(Matches(Device(request), Device(device)), matches) << request << " on " << device;
  }
}

DeviceSpec AnyDevice() {
  DeviceSpec spec;
  for (auto* field : {&spec.replica, &spec.task, &spec.id}) {
    if (*rc::gen::arbitrary<bool>()) *field = *rc::gen::inRange(0, 3);
  }
  if (*rc::gen::arbitrary<bool>()) {
    spec.job = *rc::gen::element<std::string>("ps", "worker", "Job_1");
  }
  if (*rc::gen::arbitrary<bool>()) spec.type = *rc::gen::element<std::string>("CPU", "GPU", "Odd");
  return spec;
}

RC_GTEST_PROP(DevicePropertyTest, ParsesWhatItPrints, ()) {
  const DeviceSpec spec = AnyDevice();
  const auto parsed = DeviceSpec::Parse(spec.ToString());
  RC_ASSERT(parsed.ok());
  RC_ASSERT(*parsed == spec);
}

RC_GTEST_PROP(DevicePropertyTest, ScopesNestAssociatively, ()) {
  const DeviceSpec a = AnyDevice(), b = AnyDevice(), c = AnyDevice();
  RC_ASSERT(MergeScopes(MergeScopes(a, b), c) == MergeScopes(a, MergeScopes(b, c)));
  RC_ASSERT(MergeScopes(a, DeviceSpec{}) == a);
  RC_ASSERT(MergeScopes(DeviceSpec{}, a) == a);
  RC_ASSERT(MergeScopes(a, a) == a);
}

RC_GTEST_PROP(DevicePropertyTest, MergedRequestMatchesExactlyWhatBothMatch, ()) {
  const DeviceSpec a = AnyDevice(), b = AnyDevice();
  DeviceSpec device = AnyDevice();
  device.job = device.job.value_or("ps");
  device.task = device.task.value_or(0);
  device.type = device.type.value_or("CPU");
  device.id = device.id.value_or(0);
  // `replica` left out means 0, so only requests that agree about it can be compared.
  RC_PRE(a.replica == b.replica);
  const auto merged = MergeRequests(a, b);
  const bool both = Matches(a, device) && Matches(b, device);
  RC_ASSERT((merged.ok() && Matches(*merged, device)) == both);
  RC_ASSERT(MergeRequests(b, a).ok() == merged.ok());
  if (merged.ok()) RC_ASSERT(*MergeRequests(b, a) == *merged);
}

// Random bytes, and texts near the grammar, either parse to something that prints and parses again
// or are refused with one line.
RC_GTEST_PROP(DevicePropertyTest, AnyTextParsesOrIsRefused, ()) {
  const auto piece = rc::gen::oneOf(
      rc::gen::arbitrary<std::string>(),
      rc::gen::element<std::string>("/", ":", "*", "/job:", "/task:", "/replica:", "/device:",
                                    "/cpu", "/GPU:", "ps", "0", "-1", "4294967296", "CPU"));
  std::string text;
  for (const std::string& part : *rc::gen::container<std::vector<std::string>>(piece)) text += part;
  const auto spec = DeviceSpec::Parse(text);
  if (spec.ok()) {
    RC_ASSERT(DeviceSpec::Parse(spec->ToString()).value() == *spec);
  } else {
    RC_ASSERT(spec.status().code() == absl::StatusCode::kInvalidArgument);
    RC_ASSERT(MessageOf(spec.status()).find('\n') == std::string::npos);
  }
}

}  // namespace
}  // namespace weir
