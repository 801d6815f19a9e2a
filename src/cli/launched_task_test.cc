#include "cli/launched_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace weir::cli {
namespace {

LaunchedTask Start(const std::string& script) {
  auto child = Child::Start("worker:0", {"/bin/sh", "-c", script}, {});
  EXPECT_TRUE(child.ok()) << child.status();
  return LaunchedTask(*std::move(child), /*is_ps=*/false, /*console=*/nullptr);
}

/// Reads and reaps as a launcher does, until it has ended.
void RunToEnd(LaunchedTask& task) {
  while (!task.Reap()) {
    task.ReadSome();
    ::poll(nullptr, 0, 1);
  }
}

TEST(LaunchedTaskTest, TheReportOfATaskWithManyVariablesArrives) {
  TaskReport report;
  report.task = "worker:0";
  for (int i = 0; i < 20'000; ++i)
    report.variables.push_back({.name = absl::StrCat("layer_", i, "/weight"), .bytes = 4});
  const std::string path = testing::TempDir() + "weir_long_report.json";
  std::ofstream(path) << ToJsonLine(report) << "\n";
  LaunchedTask task = Start(absl::StrCat("cat ", path, " > /proc/self/fd/$WEIR_REPORT_FD"));
  RunToEnd(task);
  std::remove(path.c_str());
  ASSERT_TRUE(task.report().has_value()) << testing::PrintToString(task.last_lines());
  EXPECT_EQ(task.report()->variables.size(), 20'000u);
}

TEST(LaunchedTaskTest, OneReadReturnsThoughTheTaskFloodsItsOutput) {
  LaunchedTask task = Start("exec yes");
  for (int i = 0; i < 100; ++i) task.ReadSome();
  task.Kill();
  RunToEnd(task);
  EXPECT_FALSE(task.ended_well());
}

TEST(LaunchedTaskTest, ItsEndIsSeenThoughWhoeverInheritedItsOutputGoesOn) {
  // Of another session: it does not end with the task's process group.
  LaunchedTask task = Start("setsid yes & sleep 0.1");
  RunToEnd(task);
  EXPECT_TRUE(task.ended_well());
}

TEST(LaunchedTaskTest, EndsWellByTheSignalItWasToldWith) {
  LaunchedTask told = Start("exec sleep 1000");
  told.TellToEnd();
  RunToEnd(told);
  EXPECT_TRUE(told.ended_well()) << told.HowItEnded();
  LaunchedTask killed = Start("kill -TERM $$");
  RunToEnd(killed);
  EXPECT_FALSE(killed.ended_well());
  EXPECT_EQ(killed.HowItEnded(), "worker:0 was killed by signal 15 (Terminated)");
}

}  // namespace
}  // namespace weir::cli
