// What the transports of one inproc::Network share: who listens where, and the faults.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/scheduler.h"
#include "transport/inproc/faults.h"

namespace weir::transport::inproc {

class Connection;
class Acceptor;

/// "inproc:7"
std::string AddressOf(int port);

/// Thread-safe. Lock order: fate_mutex_ before mutex_; both are leaves otherwise.
class Wire {
 public:
  Wire(Scheduler* scheduler, std::uint64_t seed) : scheduler_(scheduler), random_(seed) {}

  Scheduler* scheduler() const { return scheduler_; }

  void SetFaults(const Faults& faults);
  void SetFateFunction(FateFunction function);

  Fate DecideFate(const FrameHeader& header);
  /// How long what is sent now will travel.
  Duration DrawDelay();
  /// Evenly between 0 and `below` - 1.
  std::size_t Draw(std::size_t below);

  /// Port 0 takes a free one. Unavailable when the port is taken.
  absl::StatusOr<int> Bind(int port, const std::shared_ptr<Acceptor>& acceptor);
  void Unbind(int port);
  /// Null when nobody listens there.
  std::shared_ptr<Acceptor> FindAcceptor(int port);

  /// A number for the side that dials, in its peer's messages.
  int NextClient();

  void AddAccepted(int port, const std::shared_ptr<Connection>& connection);
  void LoseConnections(const std::string& address);

 private:
  Fate DrawFate();
  bool Happens(double probability) WEIR_REQUIRES(mutex_);

  Scheduler* const scheduler_;

  Mutex fate_mutex_;  // held while fate_function_ is called
  FateFunction fate_function_ WEIR_GUARDED_BY(fate_mutex_);

  Mutex mutex_;
  std::mt19937_64 random_ WEIR_GUARDED_BY(mutex_);
  Faults faults_ WEIR_GUARDED_BY(mutex_);
  int clients_ WEIR_GUARDED_BY(mutex_) = 0;
  std::map<int, std::weak_ptr<Acceptor>> acceptors_ WEIR_GUARDED_BY(mutex_);
  std::map<int, std::vector<std::weak_ptr<Connection>>> accepted_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::transport::inproc
