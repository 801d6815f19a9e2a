#include "cli/training_monitor.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <vector>

namespace weir::cli {
namespace {

void Step(TrainingMonitor& monitor, std::uint64_t step) {
  const std::vector<Output> fetches;
  const std::vector<at::Tensor> values;
  monitor.OnStep({.step = step, .fetches = &fetches, .values = &values});
}

TEST(TrainingMonitorTest, TheLimitIsShownOnce) {
  ReportPipe nobody(nullptr);
  std::vector<Progress> shown;
  TrainingMonitor monitor(
      {.task = "worker:0", .show_every = std::chrono::hours(1), .step_limit = 10}, &nobody,
      [&](const Progress& progress) { shown.push_back(progress); });
  monitor.Begin();
  Step(monitor, 4);
  EXPECT_TRUE(shown.empty());  // an hour has not passed
  Step(monitor, 10);
  Step(monitor, 9);  // several were in flight
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0].step, 10u);
  EXPECT_GT(shown[0].steps_per_second, 0);
  EXPECT_EQ(monitor.Snapshot().steps, 3u);
  EXPECT_EQ(monitor.Snapshot().global_step, 10u);
}

TEST(TrainingMonitorTest, WhatTrainedNothingIsNoStep) {
  ReportPipe nobody(nullptr);
  TrainingMonitor monitor({.task = "worker:0"}, &nobody, nullptr);
  Step(monitor, 0);
  EXPECT_EQ(monitor.Snapshot().steps, 0u);
}

}  // namespace
}  // namespace weir::cli
