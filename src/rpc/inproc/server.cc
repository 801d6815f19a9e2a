#include "rpc/inproc/server.h"

#include <utility>

namespace weir::rpc {

InprocServer::InprocServer(std::shared_ptr<Registry> registry, HostPort address,
                           std::shared_ptr<Endpoint> endpoint)
    : registry_(std::move(registry)),
      address_(std::move(address)),
      endpoint_(std::move(endpoint)) {}

InprocServer::~InprocServer() {
  Close(Duration::zero());
  endpoint_->WaitUntilIdle();
}

void InprocServer::Close(Duration grace) {
  // Once only: the address may be another server's by the second time.
  if (closed_.exchange(true)) return;
  registry_->Remove(address_);
  endpoint_->Close(grace);
}

}  // namespace weir::rpc
