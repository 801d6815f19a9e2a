#include "weir/job.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "cli/console.h"
#include "cli/flag_checks.h"
#include "cli/job_options.h"
#include "cli/production.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "cli/staleness_poll.h"
#include "cli/summary.h"
#include "cli/task_liveness.h"
#include "cli/training_monitor.h"
#include "cli/worker_barrier.h"

namespace weir {

using cli::Milliseconds;

namespace {

constexpr char kPsJob[] = "ps";

runtime::ServerOptions MakeServerOptions(const cli::JobOptions& options, const TaskConfig& config) {
  runtime::ServerOptions server;
  server.config = config;
  server.cluster_name = options.cluster_name;
  server.bind_host = options.bind_host;
  server.data_port = options.data_port;
  server.insecure = options.insecure;
  server.connect_timeout = Milliseconds(options.connect_timeout_s);
  server.stop_timeout = Milliseconds(options.stop_timeout_s);
  return server;
}

/// Under this name a status carries the text that the user has asked for.
constexpr char kHelpPayload[] = "weir.help";

absl::Status HelpStatus(const std::string& text) {
  absl::Status status = absl::CancelledError("--help was asked for");
  status.SetPayload(kHelpPayload, absl::Cord(text));
  return status;
}

cli::JobOptions OptionsWith(const JobDefaults& defaults) {
  cli::JobOptions options;
  options.steps = defaults.steps;
  return options;
}

/// "worker:2 (host:port)" for each task of the cluster; "" for one of the ps job, which serves.
std::vector<std::string> NamesOfWorkers(const ClusterSpec& cluster) {
  std::vector<std::string> names;
  for (const TaskId& task : cluster.AllTasks()) {
    const std::string address = cluster.Address(task)->ToString();
    names.push_back(task.job == kPsJob ? "" : task.ToString() + " (" + address + ")");
  }
  return names;
}

/// Says so when the others have made all the steps before this worker came.
absl::Status SayIfOver(Graph& graph, Session& session, std::int64_t step_limit, Logger& logger) {
  const int read = graph.FindNode(std::string(kGlobalStepName) + "/read");
  if (step_limit < 0 || read < 0) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const RunResult result, session.Run({}, {Output(&graph, read, 0)}));
  const auto step = result[0].item<std::int64_t>();
  if (step >= step_limit)
    logger.Info(absl::StrFormat("training has ended already, at step %d of %d", step, step_limit));
  return absl::OkStatus();
}

bool HasLauncher() {
  return std::getenv(cli::kReportFdVariable) != nullptr;
}

/// A launcher puts the task before every line itself. Without one, lines go around the progress
/// line of a terminal.
std::shared_ptr<Logger> MakeLogger(LogLevel level, const TaskId& task,
                                   const std::shared_ptr<cli::Console>& console) {
  if (HasLauncher()) return Logger::ToStderr(level);
  const std::string prefix = "[" + task.ToString() + "] ";
  if (!console->is_terminal()) return Logger::ToStderr(level)->WithPrefix(prefix);
  return Logger::ToSink(
             level, [console](LogLevel, std::string_view text) { console->Say(std::string(text)); })
      ->WithPrefix(prefix);
}

/// Remembers the loss, so that progress can show it.
class MonitoredStrategy final : public Strategy {
 public:
  MonitoredStrategy(std::unique_ptr<Strategy> strategy, cli::TrainingMonitor* monitor)
      : strategy_(std::move(strategy)), monitor_(monitor) {}
  std::string name() const override { return strategy_->name(); }
  Operation Minimize(const OptimizerSpec& optimizer, Output loss,
                     const GradientOptions& options) override {
    if (loss.valid()) monitor_->WatchLoss(loss.name());
    return strategy_->Minimize(optimizer, loss, options);
  }

 private:
  const std::unique_ptr<Strategy> strategy_;
  cli::TrainingMonitor* const monitor_;
};

}  // namespace

class Job::Impl {
 public:
  Impl(const cli::JobOptions& flags, cli::Role found, std::shared_ptr<cli::Console> terminal,
       std::shared_ptr<Logger> log)
      : options(flags),
        role(std::move(found)),
        console(std::move(terminal)),
        logger(std::move(log)),
        pipe(std::getenv(cli::kReportFdVariable)),
        monitor(MonitorOptions(), &pipe,
                [this](const cli::Progress& progress) { ShowProgress(progress); }),
        strategy(NewAsyncStrategy({.stop_at_step = flags.steps, .global_step_device = Setter({})}),
                 &monitor),
        started(std::chrono::steady_clock::now()) {}

  /// Ends a task that serves in good order, any other at once, as it would without a watcher.
  void OnSignal(int signal) {
    if (serving) return server->RequestShutdown("a signal");
    std::signal(signal, SIG_DFL);
    cli::UnblockStopSignals();
    std::raise(signal);
  }

  ~Impl() {
    if (!server) return;
    console->ClearProgress();
    cli::TaskReport report = monitor.Snapshot();
    report.final = true;
    cli::AddStore(server->variables(), report);
    pipe.Write(report);
    if (!pipe.is_open() && !options.summary.empty()) WriteOwnSummary(report);
    server->Close();
  }

  DeviceFunction Setter(PlacementStrategy placement) const {
    ReplicaDeviceSetterOptions setter;
    setter.ps_tasks = role.config.cluster.NumTasks(kPsJob);
    setter.worker_device = role.config.task.DevicePrefix();
    setter.strategy = placement;
    return weir::ReplicaDeviceSetter(setter);
  }

  cli::WorkerBarrier MakeBarrier(Graph& graph) const {
    const ClusterSpec& cluster = role.config.cluster;
    const std::vector<TaskId> tasks = cluster.AllTasks();
    const auto self = std::find(tasks.begin(), tasks.end(), role.config.task);
    const std::string meeting_place = cluster.NumTasks(kPsJob) > 0 ? kPsJob : "worker";
    return cli::WorkerBarrier(
        graph, {.device = "/job:" + meeting_place + "/task:0",
                .names = NamesOfWorkers(cluster),
                .own_slot = static_cast<int>(self - tasks.begin()),
                .token = cli::WorkerBarrier::MakeToken(server->identity().incarnation),
                .is_alive = [tasks, asker = std::make_shared<cli::TaskLiveness>(cluster)](
                                int slot, std::int64_t token) {
                  const auto lives = asker->Incarnation(tasks[static_cast<std::size_t>(slot)]);
                  return lives && cli::WorkerBarrier::MakeToken(*lives) == token;
                }});
  }

  cli::TrainingMonitor::Options MonitorOptions() const {
    const bool lines = !pipe.is_open() && !options.no_progress;
    return {.task = role.config.task.ToString(),
            .report_every = std::chrono::milliseconds(250),
            .show_every = lines ? cli::ProgressEvery(*console) : std::chrono::milliseconds(0),
            .step_limit = options.steps};
  }

  /// What the staleness poll has been told so far is shown, and the next round asked for.
  void ShowProgress(cli::Progress progress) {
    staleness->Ask();
    progress.staleness = staleness->latest();
    const std::string line = cli::FormatProgress(progress);
    if (!console->is_terminal()) return logger->Info(line);
    console->Progress(line);
    if (!progress.is_over()) return;
    console->ClearProgress();
    console->Say(line);  // it stays
  }

  void Begin() {
    if (!pipe.is_open() && !staleness) {
      staleness.emplace(role.config.cluster);
      staleness->Ask();
    }
    logger->Info("training begins");
    monitor.Begin();
  }

  void WriteOwnSummary(const cli::TaskReport& report) const {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    const absl::Status status =
        cli::WriteSummary(options.summary, cli::Summarize({report}, seconds));
    if (!status.ok()) logger->Error(std::string(status.message()));
  }

  const cli::JobOptions options;
  const cli::Role role;
  const std::shared_ptr<cli::Console> console;
  const std::shared_ptr<Logger> logger;
  cli::ReportPipe pipe;
  cli::TrainingMonitor monitor;
  MonitoredStrategy strategy;
  const std::chrono::steady_clock::time_point started;
  int wait_for_workers = 0;
  std::optional<cli::WorkerBarrier> barrier;
  std::optional<cli::StalenessPoll>
      staleness;  // from the first session on, if there is no launcher
  std::unique_ptr<runtime::Server> server;
  std::atomic<bool> serving{false};
  std::optional<cli::SignalWatcher> signals;  // last: it refers to what is above
};

absl::StatusOr<Job> Job::FromCommandLine(int* argc, char** argv, const JobDefaults& defaults) {
  if (WantsHelp(*argc, argv)) return HelpStatus(FlagsHelp(defaults));
  WEIR_ASSIGN_OR_RETURN(const cli::JobOptions options,
                        cli::TakeJobFlags(argc, argv, OptionsWith(defaults)));
  WEIR_ASSIGN_OR_RETURN(cli::Role role, cli::FindRole(options, std::getenv("TF_CONFIG"),
                                                      cli::FindStartedTogether(std::getenv)));
  WEIR_ASSIGN_OR_RETURN(const LogLevel level, cli::ParseLogLevel(options.log_level));
  cli::BlockStopSignals();  // before the first thread: the watcher takes them
  cli::TuneProcess(options.threads);
  const auto console = std::make_shared<cli::Console>();
  const auto logger = MakeLogger(level, role.config.task, console);
  auto impl = std::make_unique<Impl>(options, std::move(role), console, logger);
  WEIR_ASSIGN_OR_RETURN(
      impl->server,
      runtime::Server::Start(MakeServerOptions(options, impl->role.config),
                             cli::ProductionParts(options.io_threads, options.threads, logger)));
  logger->Info(absl::StrFormat(
      "role from %s, control plane %s, data plane %s, %d computing thread%s", impl->role.source,
      impl->server->control_address(), impl->server->data_address(), options.threads,
      options.threads == 1 ? "" : "s"));
  impl->signals.emplace([task = impl.get()](int signal) { task->OnSignal(signal); });
  return Job(std::move(impl));
}

bool Job::WantsHelp(int argc, char* const* argv) {
  return std::any_of(argv + 1, argv + argc, [](const char* argument) {
    return std::strcmp(argument, "--help") == 0 || std::strcmp(argument, "-h") == 0;
  });
}

std::string Job::FlagsHelp(const JobDefaults& defaults) {
  CLI::App app("Flags of every Weir program");
  app.set_help_flag();
  cli::JobOptions options = OptionsWith(defaults);
  cli::AddJobFlags(app, options);
  return app.help();
}

Job::Job(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Job::Job(Job&&) noexcept = default;
Job& Job::operator=(Job&&) noexcept = default;
Job::~Job() = default;

bool Job::is_ps() const {
  return job() == kPsJob;
}
std::string Job::job() const {
  return impl_->role.config.task.job;
}
int Job::task() const {
  return impl_->role.config.task.index;
}
int Job::num_tasks(const std::string& job) const {
  return impl_->role.config.cluster.NumTasks(job);
}
std::string Job::device() const {
  return impl_->role.config.task.DevicePrefix();
}
std::int64_t Job::step_limit() const {
  return impl_->options.steps;
}
void Job::WaitForWorkers(int workers) {
  impl_->wait_for_workers = workers;
}
std::uint64_t Job::data_plane_bytes() const {
  const runtime::Traffic& traffic = impl_->server->traffic();
  return traffic.bytes_in.load() + traffic.bytes_out.load();
}
Strategy& Job::strategy() {
  return impl_->strategy;
}
void Job::Report(const std::string& name, double value) {
  impl_->monitor.AddResult(name, value);
}

int Job::Serve() {
  runtime::Server& server = *impl_->server;
  impl_->serving = true;
  impl_->monitor.Serving();
  impl_->logger->Info("serving");
  const std::string reason = server.AwaitShutdown();
  impl_->logger->Info("ending: " + reason);
  return 0;
}

DeviceFunction Job::ReplicaDeviceSetter(PlacementStrategy strategy) const {
  return impl_->Setter(strategy);
}

absl::StatusOr<Session> Job::OpenSession(Graph& graph, SessionOptions options) {
  const cli::JobOptions& flags = impl_->options;
  const int workers =
      flags.wait_for_workers >= 0 ? flags.wait_for_workers : impl_->wait_for_workers;
  if (workers > 1) impl_->barrier.emplace(impl_->MakeBarrier(graph));
  options.start_timeout = Milliseconds(flags.start_timeout_s);
  options.step_timeout = Milliseconds(flags.step_timeout_s);
  WEIR_ASSIGN_OR_RETURN(Session session, impl_->server->OpenSession(graph, options));
  if (impl_->barrier) {
    impl_->monitor.Waiting();
    WEIR_RETURN_IF_ERROR(
        impl_->barrier->Meet(session, workers, options.start_timeout, *impl_->logger));
  }
  WEIR_RETURN_IF_ERROR(SayIfOver(graph, session, flags.steps, *impl_->logger));
  session.SetObserver(
      [monitor = &impl_->monitor](const StepReport& step) { monitor->OnStep(step); });
  impl_->Begin();
  return session;
}

absl::Status Job::Finish(Session& session) {
  if (impl_->barrier) {
    WEIR_RETURN_IF_ERROR(impl_->barrier->Leave(session));
    const bool others_need_me = !is_ps() && !impl_->server->variables().All().empty();
    const absl::Status left =
        others_need_me ? impl_->barrier->AwaitOthers(
                             session, Milliseconds(impl_->options.start_timeout_s), *impl_->logger)
                       : absl::OkStatus();
    if (!left.ok()) impl_->logger->Warning("ending before others: " + std::string(left.message()));
  }
  return session.Close();
}

void Job::EndJob() {
  impl_->server->ShutdownOthers(device() + " has ended the job");
}

int Exit(const absl::Status& status) {
  if (const auto help = status.GetPayload(kHelpPayload)) {
    std::printf("%s", std::string(*help).c_str());
    return 0;
  }
  if (status.ok() || absl::IsOutOfRange(status)) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

}  // namespace weir
