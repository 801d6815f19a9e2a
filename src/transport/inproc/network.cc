#include "transport/inproc/network.h"

#include <utility>

#include "transport/inproc/transport.h"
#include "transport/inproc/wire.h"

namespace weir::transport::inproc {

Network::Network(Scheduler* scheduler, std::uint64_t seed)
    : wire_(std::make_shared<Wire>(scheduler, seed)) {}

Network::~Network() = default;

std::unique_ptr<Transport> Network::NewTransport() {
  return inproc::NewTransport(wire_);
}

void Network::SetFaults(const Faults& faults) {
  wire_->SetFaults(faults);
}

void Network::SetFateFunction(FateFunction function) {
  wire_->SetFateFunction(std::move(function));
}

void Network::LoseConnections(const std::string& address) {
  wire_->LoseConnections(address);
}

}  // namespace weir::transport::inproc
