#include "cli/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace weir::cli {
namespace {

TaskReport Worker(int index, std::uint64_t steps, double began, double last_step) {
  TaskReport report;
  report.task = "worker:" + std::to_string(index);
  report.steps = steps;
  report.began = began;
  report.last_step = last_step;
  report.results["test_accuracy"] = 0.9 + index;
  return report;
}

TaskReport Ps() {
  TaskReport report;
  report.task = "ps:0";
  report.variables = {
      {.name = "w", .bytes = 400, .updates = 30},
      {.name = "global_step", .bytes = 8, .updates = 30, .trainable = false},
  };
  report.staleness = {{0, 97}, {1, 1}, {7, 2}};
  return report;
}

TEST(SummaryTest, CountsFromTheMomentTrainingBegan) {
  const Summary summary = Summarize({Worker(1, 10, 100, 109), Worker(0, 20, 102, 112), Ps()}, 15);
  EXPECT_EQ(summary.global_steps, 30u);
  EXPECT_DOUBLE_EQ(summary.steps_per_second, 2.5);  // 30 steps from 100 to 112
  EXPECT_EQ(summary.workers[0].task, "worker:0");
  EXPECT_DOUBLE_EQ(summary.results.at("test_accuracy"), 0.9);  // worker 0's word
  EXPECT_EQ(summary.ps[0].bytes, 408u);
  EXPECT_EQ(summary.staleness.p50, 0u);
  EXPECT_EQ(summary.staleness.p99, 7u);
  EXPECT_EQ(summary.staleness.max, 7u);
}

TEST(SummaryTest, StepsThatAKilledWorkerDidNotTellOfCountToo) {
  const Summary summary = Summarize({Worker(0, 10, 100, 109), Ps()}, 15);
  EXPECT_EQ(summary.global_steps, 30u) << "the variable knows";
}

TEST(SummaryTest, JsonHasTheAgreedFields) {
  const auto json = nlohmann::json::parse(SummaryToJson(Summarize({Worker(0, 30, 1, 2), Ps()}, 3)));
  EXPECT_DOUBLE_EQ(json.at("test_accuracy"), 0.9);
  EXPECT_EQ(json.at("workers")[0], (nlohmann::json{{"task", "worker:0"}, {"steps", 30}}));
  EXPECT_EQ(json.at("ps")[0].at("variables")[0],
            (nlohmann::json{{"name", "w"}, {"bytes", 400}, {"updates", 30}}));
  for (const char* field : {"global_steps", "steps_per_second", "seconds", "staleness"}) {
    EXPECT_TRUE(json.contains(field)) << field;
  }
}

TEST(SummaryTest, TasksComeByJobAndIndex) {
  TaskReport chief = Worker(0, 1, 1, 2);
  chief.task = "chief:0";
  const Summary summary =
      Summarize({Worker(10, 1, 1, 2), Worker(2, 1, 1, 2), chief, Worker(0, 1, 1, 2)}, 3);
  std::vector<std::string> names;
  for (const TaskSummary& task : summary.workers) names.push_back(task.task);
  EXPECT_THAT(names, testing::ElementsAre("chief:0", "worker:0", "worker:2", "worker:10"));
}

TEST(SummaryTest, AJobThatDidNothingHasNoRate) {
  EXPECT_EQ(Summarize({}, 1).steps_per_second, 0);
  EXPECT_EQ(Summarize({Worker(0, 0, 5, 0)}, 1).steps_per_second, 0);
}

TEST(ReportTest, ALineRoundTrips) {
  TaskReport report = Ps();
  report.loss = 0.5;
  report.final = true;
  report.step_limit = 30;
  const auto parsed = ParseReport(ToJsonLine(report));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(ToJsonLine(*parsed), ToJsonLine(report));
  EXPECT_EQ(parsed->variables[1].name, "global_step");
  EXPECT_EQ(parsed->staleness.at(7), 2u);
}

TEST(ReportTest, WhatIsNotANumberLosesNothingElse) {
  TaskReport report = Worker(0, 30, 1, 2);
  report.loss = std::nan("");
  report.results["diverged"] = std::nan("");
  report.results["exploded"] = std::numeric_limits<double>::infinity();
  const auto parsed = ParseReport(ToJsonLine(report));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(std::isnan(*parsed->loss));
  EXPECT_TRUE(std::isnan(parsed->results.at("diverged")));
  EXPECT_TRUE(std::isnan(parsed->results.at("exploded")));
  EXPECT_DOUBLE_EQ(parsed->results.at("test_accuracy"), 0.9);
  const auto summary = nlohmann::json::parse(SummaryToJson(Summarize({*parsed}, 3)));
  EXPECT_TRUE(summary.at("diverged").is_null());
  EXPECT_EQ(summary.at("global_steps"), 30);
}

TEST(ReportTest, WhatIsNoReportIsRefused) {
  for (const char* line : {"", "{", "[]", "{}", R"({"task": 3})"}) {
    EXPECT_FALSE(ParseReport(line).ok()) << line;
  }
}

}  // namespace
}  // namespace weir::cli
