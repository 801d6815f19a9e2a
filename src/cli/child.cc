#include "cli/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/report.h"
#include "cli/signals.h"

namespace weir::cli {
namespace {

struct Pipe {
  int read = -1;
  int write = -1;
  bool Open() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return false;
    read = fds[0];
    write = fds[1];
    return true;
  }
  void CloseBoth() const {
    if (read >= 0) ::close(read);
    if (write >= 0) ::close(write);
  }
};

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> EnvironmentWith(const std::map<std::string, std::string>& added) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) environment.push_back(text);
  }
  for (const auto& [name, value] : added) environment.push_back(name + "=" + value);
  return environment;
}

/// In the child, between fork and exec: async-signal-safe calls only. Tells the errno of a failed
/// exec through `failure`.
[[noreturn]] void RunChild(pid_t launcher, int out, int err, int failure, char* const* argv,
                           char* const* envp) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(127);  // the launcher died before the line above
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  UnblockStopSignals();
  ::execvpe(argv[0], argv, envp);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(failure, &error, sizeof(error));
  ::_exit(127);
}

}  // namespace

absl::StatusOr<Child> Child::Start(std::string task, const std::vector<std::string>& command,
                                   const std::map<std::string, std::string>& environment) {
  Pipe out, err, report, failure;
  const bool opened = out.Open() && err.Open() && report.Open() && failure.Open();
  const auto close_all = [&] {
    for (const Pipe& pipe : {out, err, report, failure}) pipe.CloseBoth();
  };
  if (!opened) {
    close_all();
    return absl::ResourceExhaustedError(
        absl::StrCat("no pipe for ", task, ": ", std::strerror(errno)));
  }
  ::fcntl(report.write, F_SETFD, 0);  // the one descriptor a child inherits
  auto all = environment;
  all[kReportFdVariable] = absl::StrCat(report.write);
  std::vector<std::string> arguments = command;
  std::vector<std::string> variables = EnvironmentWith(all);
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(variables);
  const pid_t launcher = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) RunChild(launcher, out.write, err.write, failure.write, argv.data(), envp.data());
  for (Pipe* pipe : {&out, &err, &report, &failure}) ::close(std::exchange(pipe->write, -1));
  int error = errno;
  if (pid < 0 || ::read(failure.read, &error, sizeof(error)) == sizeof(error)) {
    close_all();
    if (pid > 0) ::waitpid(pid, nullptr, 0);
    return absl::NotFoundError(
        absl::StrCat("cannot start '", command[0], "' for ", task, ": ", std::strerror(error)));
  }
  ::close(failure.read);
  Child child;
  child.task_ = std::move(task);
  child.pid_ = pid;
  child.stdout_ = out.read;
  child.stderr_ = err.read;
  child.report_ = report.read;
  for (const int fd : {out.read, err.read, report.read}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  return child;
}

Child::Child(Child&& other) noexcept
    : task_(std::move(other.task_)),
      pid_(std::exchange(other.pid_, -1)),
      stdout_(std::exchange(other.stdout_, -1)),
      stderr_(std::exchange(other.stderr_, -1)),
      report_(std::exchange(other.report_, -1)),
      ended_(other.ended_),
      wait_status_(other.wait_status_) {}

Child::~Child() {
  if (pid_ > 0 && !ended_) {
    Signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {stdout_, stderr_, report_}) {
    if (fd >= 0) ::close(fd);
  }
}

void Child::Reap() {
  if (ended_ || ::waitpid(pid_, &wait_status_, WNOHANG) != pid_) return;
  ended_ = true;
  ::kill(-pid_, SIGKILL);  // what it left behind in its group
}

void Child::Signal(int signal) const {
  if (::kill(-pid_, signal) != 0 && !ended_) ::kill(pid_, signal);
}

bool Child::succeeded() const {
  return WIFEXITED(wait_status_) && WEXITSTATUS(wait_status_) == 0;
}

bool Child::was_ended_by(int signal) const {
  return WIFSIGNALED(wait_status_) && WTERMSIG(wait_status_) == signal;
}

std::string Child::HowItEnded() const {
  if (WIFSIGNALED(wait_status_)) {
    const int signal = WTERMSIG(wait_status_);
    return absl::StrCat("was killed by signal ", signal, " (", ::strsignal(signal), ")");
  }
  return absl::StrCat("ended with code ", WEXITSTATUS(wait_status_));
}

}  // namespace weir::cli
