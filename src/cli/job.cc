#include "weir/job.h"

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "cli/job_options.h"
#include "cli/production.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "cli/training_monitor.h"
#include "cli/worker_barrier.h"

namespace weir {
namespace {

constexpr char kPsJob[] = "ps";

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

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

cli::JobOptions OptionsWith(const JobDefaults& defaults) {
  cli::JobOptions options;
  options.steps = defaults.steps;
  return options;
}

/// Remembers the loss, so that progress can show it.
class MonitoredStrategy final : public Strategy {
 public:
  MonitoredStrategy(std::unique_ptr<Strategy> strategy, cli::TrainingMonitor* monitor)
      : strategy_(std::move(strategy)), monitor_(monitor) {}
  std::string name() const override { return strategy_->name(); }
  Operation Minimize(const OptimizerSpec& optimizer, Output loss) override {
    if (loss.valid()) monitor_->WatchLoss(loss.name());
    return strategy_->Minimize(optimizer, loss);
  }

 private:
  const std::unique_ptr<Strategy> strategy_;
  cli::TrainingMonitor* const monitor_;
};

}  // namespace

class Job::Impl {
 public:
  Impl(const cli::JobOptions& flags, cli::Role found, std::shared_ptr<Logger> log)
      : options(flags),
        role(std::move(found)),
        logger(std::move(log)),
        pipe(std::getenv(cli::kReportFdVariable)),
        monitor(MonitorOptions(), &pipe, [this](const std::string& line) { logger->Info(line); }),
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

  /// Where workers count themselves: on a ps, or on the first worker where there is none.
  DeviceFunction MeetingPlace() const {
    if (role.config.cluster.NumTasks(kPsJob) > 0) return Setter({});
    return [](const Node&) { return std::string("/job:worker/task:0"); };
  }

  cli::TrainingMonitor::Options MonitorOptions() const {
    const bool lines = !pipe.is_open() && !options.no_progress;
    return {.task = role.config.task.ToString(),
            .report_every = std::chrono::milliseconds(250),
            .line_every = std::chrono::milliseconds(lines ? 5000 : 0),
            .step_limit = options.steps};
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
  const std::shared_ptr<Logger> logger;
  cli::ReportPipe pipe;
  cli::TrainingMonitor monitor;
  MonitoredStrategy strategy;
  const std::chrono::steady_clock::time_point started;
  int wait_for_workers = 0;
  std::optional<cli::WorkerBarrier> ready, done;
  std::unique_ptr<runtime::Server> server;
  std::atomic<bool> serving{false};
  std::optional<cli::SignalWatcher> signals;  // last: it refers to what is above
};

absl::StatusOr<Job> Job::FromCommandLine(int* argc, char** argv, const JobDefaults& defaults) {
  WEIR_ASSIGN_OR_RETURN(const cli::JobOptions options,
                        cli::TakeJobFlags(argc, argv, OptionsWith(defaults)));
  WEIR_ASSIGN_OR_RETURN(cli::Role role, cli::FindRole(options, std::getenv("TF_CONFIG")));
  WEIR_ASSIGN_OR_RETURN(const LogLevel level, cli::ParseLogLevel(options.log_level));
  cli::BlockStopSignals();  // before the first thread: the watcher takes them
  cli::TuneProcess(options.threads);
  auto logger = Logger::ToStderr(level);
  // A launcher puts the task in front of every line itself.
  if (std::getenv(cli::kReportFdVariable) == nullptr)
    logger = logger->WithPrefix("[" + role.config.task.ToString() + "] ");
  auto impl = std::make_unique<Impl>(options, std::move(role), logger);
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

absl::StatusOr<Session> Job::OpenSession(Graph& graph) {
  const cli::JobOptions& flags = impl_->options;
  const int workers =
      flags.wait_for_workers >= 0 ? flags.wait_for_workers : impl_->wait_for_workers;
  if (workers > 1) {
    impl_->ready.emplace(graph, impl_->MeetingPlace(), "ready");
    impl_->done.emplace(graph, impl_->MeetingPlace(), "done");
  }
  SessionOptions options;
  options.start_timeout = Milliseconds(flags.start_timeout_s);
  options.step_timeout = Milliseconds(flags.step_timeout_s);
  WEIR_ASSIGN_OR_RETURN(Session session, impl_->server->OpenSession(graph, options));
  if (impl_->ready) {
    WEIR_RETURN_IF_ERROR(impl_->ready->CountMe(session));
    WEIR_RETURN_IF_ERROR(
        impl_->ready->Await(session, workers, options.start_timeout, *impl_->logger));
  }
  session.SetObserver(
      [monitor = &impl_->monitor](const StepReport& step) { monitor->OnStep(step); });
  impl_->monitor.Begin();
  return session;
}

absl::Status Job::Finish(Session& session) {
  if (impl_->done) WEIR_RETURN_IF_ERROR(impl_->done->CountMe(session));
  const bool others_need_me = !is_ps() && !impl_->server->variables().All().empty();
  if (impl_->done && others_need_me) {
    const absl::Status all_done = impl_->done->Await(
        session, num_tasks("worker"), Milliseconds(impl_->options.start_timeout_s), *impl_->logger);
    if (!all_done.ok())
      impl_->logger->Warning("ending before the other workers: " + std::string(all_done.message()));
  }
  return session.Close();
}

void Job::EndJob() {
  impl_->server->ShutdownOthers(device() + " has ended the job");
}

int Exit(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return absl::IsOutOfRange(status) ? 0 : 1;
}

}  // namespace weir
