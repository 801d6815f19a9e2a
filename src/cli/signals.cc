#include "cli/signals.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace weir::cli {
namespace {

bool IsIgnored(int signal) {
  struct sigaction action{};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// A signal that is blocked reaches a signalfd even where it is ignored.
sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    if (!IsIgnored(signal)) sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

void BlockStopSignals() {
  const sigset_t set = StopSignals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void UnblockStopSignals() {
  const sigset_t set = StopSignals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

int OpenStopSignals() {
  const sigset_t set = StopSignals();
  return ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

SignalWatcher::SignalWatcher(std::function<void(int)> on_signal)
    : on_signal_(std::move(on_signal)),
      stop_fd_(::eventfd(0, EFD_CLOEXEC)),
      thread_([this] { Run(); }) {}

SignalWatcher::~SignalWatcher() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_fd_, &one, sizeof(one));
  thread_.join();
  ::close(stop_fd_);
}

void SignalWatcher::Run() {
  const int signal_fd = OpenStopSignals();
  pollfd fds[] = {{.fd = signal_fd, .events = POLLIN, .revents = 0},
                  {.fd = stop_fd_, .events = POLLIN, .revents = 0}};
  while (::poll(fds, 2, -1) >= 0 && fds[1].revents == 0) {
    signalfd_siginfo info{};
    if (fds[0].revents != 0 && ::read(signal_fd, &info, sizeof(info)) == sizeof(info))
      on_signal_(static_cast<int>(info.ssi_signo));
  }
  ::close(signal_fd);
}

}  // namespace weir::cli
