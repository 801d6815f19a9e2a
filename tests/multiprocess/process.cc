#include "multiprocess/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status.h"
#include "cli/free_port.h"

namespace weir::testing_process {
namespace {

using Clock = std::chrono::steady_clock;

/// Looks every 5 ms until `done` or `timeout`: what happens in another process cannot be awaited
/// otherwise.
bool Poll(std::chrono::milliseconds timeout, const std::function<bool()>& done) {
  const auto deadline = Clock::now() + timeout;
  while (!done()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Process::Process(std::vector<std::string> command, std::vector<std::string> environment) {
  char path[] = "/tmp/weir_process_XXXXXX";
  const int output = ::mkstemp(path);
  WEIR_CHECK(output >= 0);
  output_path_ = path;
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
    ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    for (std::string& entry : environment) ::putenv(entry.data());
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(output);
}

Process::~Process() {
  if (!code_) {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    Wait(std::chrono::seconds(10));
  }
  std::remove(output_path_.c_str());
}

void Process::Signal(int signal) const {
  ::kill(pid_, signal);
}

std::optional<int> Process::Wait(std::chrono::milliseconds timeout) {
  Poll(timeout, [this] {
    int status = 0;
    if (!code_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
      code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    return code_.has_value();
  });
  return code_;
}

bool Process::running() {
  return !Wait(std::chrono::milliseconds(0)).has_value();
}

std::string Process::Output() const {
  return ReadFile(output_path_);
}

bool Process::AwaitOutput(const std::string& text, std::chrono::milliseconds timeout) {
  bool found = false;
  Poll(timeout, [&] {
    const bool ended = !running();
    found = Output().find(text) != std::string::npos;
    return found || ended;
  });
  return found;
}

std::vector<pid_t> Process::Children() const {
  std::istringstream text(ReadFile(absl::StrCat("/proc/", pid_, "/task/", pid_, "/children")));
  std::vector<pid_t> children;
  for (pid_t child = 0; text >> child;) children.push_back(child);
  return children;
}

std::string Binary(const std::string& name) {
  return absl::StrCat(WEIR_BIN_DIR, "/", name);
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

bool IsAlive(pid_t pid) {
  const std::string stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  const std::size_t state = stat.rfind(')');
  return state != std::string::npos && stat.size() > state + 2 && stat[state + 2] != 'Z';
}

bool AwaitGone(const std::vector<pid_t>& pids, std::chrono::milliseconds timeout) {
  return Poll(timeout, [&] { return std::none_of(pids.begin(), pids.end(), IsAlive); });
}

std::string EnvironmentOf(pid_t pid, const std::string& name) {
  std::istringstream entries(ReadFile(absl::StrCat("/proc/", pid, "/environ")));
  for (std::string entry; std::getline(entries, entry, '\0');) {
    if (entry.rfind(name + "=", 0) == 0) return entry.substr(name.size() + 1);
  }
  return "";
}

std::vector<std::string> FreeAddresses(int count) {
  // Held as long as the tests run; their number is small.
  static Mutex mutex;
  static std::vector<cli::ReservedPorts> reserved;
  MutexLock lock(mutex);
  auto found = cli::ReservedPorts::Find(count);
  WEIR_CHECK(found.ok());
  reserved.push_back(*std::move(found));
  std::vector<std::string> addresses;
  for (const int port : reserved.back().ports())
    addresses.push_back(absl::StrCat("127.0.0.1:", port));
  return addresses;
}

}  // namespace weir::testing_process
