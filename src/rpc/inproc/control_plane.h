// The control plane of tests: a whole cluster's calls inside one process, in the time of its
// schedulers (virtual where they are simulated), with faults on demand.
//
//   SimScheduler scheduler(seed);
//   rpc::Network network;
//   auto plane = network.NewControlPlane(&scheduler);
//   auto server = plane->Serve("ps0", 2222, &service).value();
//   plane->NewClient("ps0:2222")->Announce(caller, options, reply);
#pragma once

#include <memory>
#include <string>

#include "base/scheduler.h"
#include "rpc/control_plane.h"
#include "rpc/inproc/registry.h"

namespace weir::rpc {

/// The addresses that control planes share. Structs are passed on uncopied as far as tensors are
/// concerned: a constant that travels is the caller's own storage. Thread-safe; may be destroyed
/// before its control planes.
class Network {
 public:
  Network();

  /// A control plane whose services and replies run on `scheduler` (not owned; outlives plane,
  /// servers and calls). A service that blocks does so on a thread of that scheduler, so that
  /// several at a time want several threads. Calls of planes on different schedulers meet.
  /// A call that waits for its task looks for it every 10 ms. Nothing is replied once the scheduler
  /// has been closed. Close() replies to the calls in flight itself; what another thread of the
  /// scheduler is replying at that moment it does not wait for.
  std::unique_ptr<ControlPlane> NewControlPlane(Scheduler* scheduler);

  /// An unreachable address is as if nobody listened there; a call that is being answered there
  /// loses its connection. Ignores what is no address.
  void SetReachable(const std::string& address, bool reachable);

  /// The time that every request takes to arrive, and every answer.
  void SetDelay(Duration delay);

 private:
  const std::shared_ptr<Registry> registry_;
};

}  // namespace weir::rpc
