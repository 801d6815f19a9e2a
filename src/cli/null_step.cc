// `weir bench null-step`: a step that reads every parameter, or some random rows of them, computes
// next to nothing and updates what it read (the shape of OSDI'16 section 6.2). The command launches
// a cluster of itself; each task is RunNullStepTask.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/launch.h"
#include "weir/weir.h"

namespace weir::cli {
namespace {

struct NullStepOptions {
  int ps = 1;
  int workers = 1;
  std::int64_t floats = 1;  // in all, over the ps tasks
  bool sparse = false;
  int rows = 32;  // of a sparse step, over the ps tasks
  int steps = 2000;
  bool json = false;
};

constexpr int kWarmUpSteps = 5;
constexpr std::int64_t kRowFloats = 64;
const Sgd kUpdate{.learning_rate = 0.01};

/// The update by a gradient that is one out-of-place kernel of the whole variable.
Operation BuildDense(Graph& graph, const std::string& name, std::int64_t floats) {
  const Variable variable = graph.Variable(name, Zeros({floats}));
  Output gradient;
  {
    DeviceScope here(graph, "");
    gradient = ops::mul_scalar(variable, 1.0);
  }
  return ApplyGradient(kUpdate, variable, gradient);
}

/// The update of `count` random rows by themselves.
Operation BuildSparse(Graph& graph, const std::string& name, std::int64_t floats,
                      std::int64_t count) {
  const std::int64_t rows = floats / kRowFloats;
  const Variable table = graph.Variable(name, Zeros({rows, kRowFloats}));
  DeviceScope here(graph, "");
  const std::vector<AtenArg> drawn = {AttrValue(rows), AttrValue(std::vector<std::int64_t>{count}),
                                      AttrValue(std::monostate())};
  const Output ids = graph.Aten("aten::randint", "generator", drawn, name + "/ids").front();
  return ApplySparseGradient(kUpdate, table, ids, EmbeddingLookup(table, ids));
}

/// One variable on each ps.
Operation BuildNullStep(Graph& graph, int ps, const NullStepOptions& options) {
  std::vector<Operation> updates;
  const std::int64_t floats = std::max<std::int64_t>(1, options.floats / ps);
  for (int i = 0; i < ps; ++i) {
    DeviceScope scope(graph, absl::StrCat("/job:ps/task:", i));
    const std::string name = absl::StrCat("v", i);
    updates.push_back(options.sparse ? BuildSparse(graph, name, floats, options.rows / ps)
                                     : BuildDense(graph, name, floats));
  }
  return graph.Group(updates, "null_step");
}

double Quantile(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
}

absl::Status TimeSteps(Job& job, const NullStepOptions& options) {
  Graph graph;
  const Operation step = BuildNullStep(graph, job.num_tasks("ps"), options);
  job.WaitForWorkers(job.num_tasks("worker"));
  WEIR_ASSIGN_OR_RETURN(Session session, job.OpenSession(graph));
  for (int i = 0; i < kWarmUpSteps; ++i) WEIR_RETURN_IF_ERROR(session.Run({}, {}, {step}).status());
  const std::uint64_t bytes_before = job.data_plane_bytes();
  std::vector<double> milliseconds;
  double total = 0;
  for (int i = 0; i < options.steps; ++i) {
    const auto began = std::chrono::steady_clock::now();
    WEIR_RETURN_IF_ERROR(session.Run({}, {}, {step}).status());
    milliseconds.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began)
            .count());
    total += milliseconds.back();
  }
  const double bytes = static_cast<double>(job.data_plane_bytes() - bytes_before);
  std::sort(milliseconds.begin(), milliseconds.end());
  job.Report("min_ms", milliseconds.front());
  job.Report("median_ms", Quantile(milliseconds, 0.5));
  job.Report("p10_ms", Quantile(milliseconds, 0.1));
  job.Report("p90_ms", Quantile(milliseconds, 0.9));
  job.Report("p99_ms", Quantile(milliseconds, 0.99));
  job.Report("steps_per_second", 1e3 * options.steps / total);
  job.Report("bytes_per_step", bytes / options.steps);
  return session.Close();
}

absl::Status CheckTable(const NullStepOptions& options) {
  if (!options.sparse) return absl::OkStatus();
  const std::int64_t least = options.ps * kRowFloats;
  if (options.floats < least) {
    return absl::InvalidArgumentError(absl::StrCat("--sparse needs --floats of ", least,
                                                   " or more: each ps holds rows of ", kRowFloats));
  }
  if (options.rows % options.ps == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--rows ", options.rows, " cannot be dealt to ",
                                                 options.ps, " ps in equal shares"));
}

// Tables have whole rows, and as many on each ps: what is reported is what there is.
std::int64_t FloatsThereAre(const NullStepOptions& options) {
  const std::int64_t unit = options.sparse ? options.ps * kRowFloats : options.ps;
  return options.floats / unit * unit;
}

absl::StatusOr<int> Bench(const NullStepOptions& options) {
  WEIR_RETURN_IF_ERROR(CheckTable(options));
  LaunchOptions launch;
  launch.ps = options.ps;
  launch.workers = options.workers;
  launch.quiet = true;
  launch.command = {"/proc/self/exe", "null-step-task",
                    "--log-level",    "warning",
                    "--floats",       absl::StrCat(options.floats),
                    "--bench-steps",  absl::StrCat(options.steps)};
  if (options.sparse) {
    launch.command.insert(launch.command.end(), {"--sparse", "--rows", absl::StrCat(options.rows)});
  }
  WEIR_ASSIGN_OR_RETURN(const LaunchResult result, Launch(launch));
  if (result.exit_code != 0) return result.exit_code;
  // Times are those of worker 0; the rate is all workers' together.
  std::map<std::string, double> times;
  double steps_per_second = 0;
  for (const TaskReport& report : result.reports) {
    if (report.task == "worker:0") times = report.results;
    if (const auto it = report.results.find("steps_per_second"); it != report.results.end())
      steps_per_second += it->second;
  }
  nlohmann::ordered_json json = {{"bench", "null-step"},
                                 {"ps", options.ps},
                                 {"workers", options.workers},
                                 {"floats", FloatsThereAre(options)},
                                 {"rows", options.sparse ? options.rows : 0},
                                 {"steps", options.steps}};
  for (const char* name : {"min_ms", "p10_ms", "median_ms", "p90_ms", "p99_ms", "bytes_per_step"})
    json[name] = times[name];
  json["steps_per_second"] = steps_per_second;
  if (options.json) {
    std::printf("%s\n", json.dump().c_str());
  } else {
    std::printf(
        "null step, %s%lld floats on %d ps, %d workers: median %.3f ms (p10 %.3f, p90 %.3f), %.0f "
        "steps/s, %.0f bytes a step\n",
        options.sparse ? absl::StrCat(options.rows, " rows of ").c_str() : "",
        static_cast<long long>(options.floats), options.ps, options.workers, times["median_ms"],
        times["p10_ms"], times["p90_ms"], steps_per_second, times["bytes_per_step"]);
  }
  return 0;
}

}  // namespace

int RunNullStepTask(int argc, char** argv) {
  auto job = Job::FromCommandLine(&argc, argv);
  if (!job.ok()) return ReportStatus(job.status());
  if (job->is_ps()) return job->Serve();
  NullStepOptions options;
  CLI::App app("one task of the null step benchmark");
  app.add_option("--floats", options.floats);
  app.add_flag("--sparse", options.sparse);
  app.add_option("--rows", options.rows);
  app.add_option("--bench-steps", options.steps);
  CLI11_PARSE(app, argc, argv);
  return ReportStatus(TimeSteps(*job, options));
}

void AddBenchCommand(CLI::App& weir, int& exit_code) {
  auto options = std::make_shared<NullStepOptions>();
  CLI::App* bench = weir.add_subcommand("bench", "Measure this machine");
  bench->require_subcommand(1);
  CLI::App* command = bench->add_subcommand(
      "null-step", "A step that reads parameters, computes nothing and updates them");
  command->add_option("--ps", options->ps, "Tasks that own the parameters")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--workers", options->workers, "Tasks that step")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--floats", options->floats, "Parameters in all, float32")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_flag("--sparse", options->sparse,
                    "Read and update random rows of 64 floats instead of everything");
  command->add_option("--rows", options->rows, "Rows of a --sparse step, over all ps tasks")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--steps", options->steps,
                   "Steps of each worker that are timed, after 5 to warm up")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_flag("--json", options->json, "One line of JSON");
  command->callback([options, &exit_code] {
    const auto result = Bench(*options);
    exit_code = result.ok() ? *result : ReportStatus(result.status());
  });
}

}  // namespace weir::cli
