#include "rpc/inproc/registry.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weir::rpc {
namespace {

std::string KeyOf(const HostPort& address) {
  if (address.IsLoopbackName() || address.IsLoopbackDefault()) {
    return absl::StrCat("loopback:", address.port);
  }
  return address.Key();
}

}  // namespace

absl::StatusOr<HostPort> Registry::Add(const std::string& host, int port,
                                       std::shared_ptr<Endpoint> endpoint) {
  WEIR_ASSIGN_OR_RETURN(HostPort address, HostPort::Parse(HostPort{host, port}.ToString()));
  MutexLock lock(mutex_);
  if (port == 0) address.port = NextPort(host);
  if (!endpoints_.try_emplace(KeyOf(address), std::move(endpoint)).second) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen at ", address.ToString(), ": ", std::strerror(EADDRINUSE)));
  }
  return address;
}

int Registry::NextPort(const std::string& host) {
  do {
    ++last_port_;
  } while (endpoints_.contains(KeyOf(HostPort{host, last_port_})));
  return last_port_;
}

void Registry::Remove(const HostPort& address) {
  MutexLock lock(mutex_);
  endpoints_.erase(KeyOf(address));
}

std::shared_ptr<Endpoint> Registry::Find(const HostPort& address) const {
  const std::string key = KeyOf(address);
  MutexLock lock(mutex_);
  if (unreachable_.contains(key)) return nullptr;
  const auto it = endpoints_.find(key);
  return it == endpoints_.end() ? nullptr : it->second;
}

void Registry::SetReachable(const HostPort& address, bool reachable) {
  const std::string key = KeyOf(address);
  MutexLock lock(mutex_);
  if (reachable) {
    unreachable_.erase(key);
  } else {
    unreachable_.insert(key);
  }
}

bool Registry::IsReachable(const HostPort& address) const {
  const std::string key = KeyOf(address);
  MutexLock lock(mutex_);
  return !unreachable_.contains(key);
}

void Registry::SetDelay(Duration delay) {
  MutexLock lock(mutex_);
  delay_ = delay;
}

Duration Registry::delay() const {
  MutexLock lock(mutex_);
  return delay_;
}

}  // namespace weir::rpc
