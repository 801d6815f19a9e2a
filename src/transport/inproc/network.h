// A network inside one process, for tests: one wire that any number of transports share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/scheduler.h"
#include "transport/connection.h"
#include "transport/inproc/faults.h"

namespace weir::transport::inproc {

class Wire;

/// Addresses are "inproc:7". Everything that a transport calls back runs on `scheduler`: on a
/// SimScheduler a whole cluster talks on one thread, in virtual time, and the seeds of scheduler
/// and network repeat what happened. Bytes are copied from the sender's payload when they are
/// delivered, not when they are sent; QueuedBytes() counts what has not been delivered.
///
///   SimScheduler scheduler(seed);
///   inproc::Network network(&scheduler, seed);
///   auto ps = network.NewTransport();
///   auto worker = network.NewTransport();
///
/// Thread-safe. May be destroyed before its transports.
class Network {
 public:
  /// `scheduler` is not owned; it must be open until all transports are joined.
  Network(Scheduler* scheduler, std::uint64_t seed);
  ~Network();

  std::unique_ptr<Transport> NewTransport();

  /// Counts for what is sent from now on; none at first.
  void SetFaults(const Faults& faults);

  /// `function` decides instead of the seed's probabilities (delays stay); null gives them back.
  void SetFateFunction(FateFunction function);

  /// Loses every connection that was accepted at `address`; new ones can be made. Both ends get
  /// Unavailable.
  void LoseConnections(const std::string& address);

 private:
  const std::shared_ptr<Wire> wire_;
};

}  // namespace weir::transport::inproc
