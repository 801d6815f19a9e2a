// Who listens where in a network that exists in this process only, and the faults put into it.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/scheduler.h"
#include "cluster/host_port.h"

namespace weir::rpc {

class Endpoint;

/// Addresses are compared as a network would: in any spelling, and localhost is 127.0.0.1 is ::1.
/// Thread-safe.
class Registry {
 public:
  /// Lets `endpoint` listen at host:port, or at the next free port for port 0, and returns where.
  /// Unavailable with the address when it is taken; InvalidArgument for a bad one.
  absl::StatusOr<HostPort> Add(const std::string& host, int port,
                               std::shared_ptr<Endpoint> endpoint);
  void Remove(const HostPort& address);

  /// nullptr when nobody can be reached there.
  std::shared_ptr<Endpoint> Find(const HostPort& address) const;

  void SetReachable(const HostPort& address, bool reachable);
  bool IsReachable(const HostPort& address) const;

  void SetDelay(Duration delay);
  Duration delay() const;

 private:
  int NextPort(const std::string& host) WEIR_REQUIRES(mutex_);

  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<Endpoint>> endpoints_ WEIR_GUARDED_BY(mutex_);
  std::set<std::string> unreachable_ WEIR_GUARDED_BY(mutex_);
  Duration delay_ WEIR_GUARDED_BY(mutex_) = Duration::zero();
  int last_port_ WEIR_GUARDED_BY(mutex_) = 10'000;
};

}  // namespace weir::rpc
