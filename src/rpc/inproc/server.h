// The server of the in-process control plane.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "cluster/host_port.h"
#include "rpc/control_plane.h"
#include "rpc/inproc/endpoint.h"
#include "rpc/inproc/registry.h"

namespace weir::rpc {

/// Listens at `address` from its birth, by an endpoint that `registry` knows already.
class InprocServer final : public ControlServer {
 public:
  InprocServer(std::shared_ptr<Registry> registry, HostPort address,
               std::shared_ptr<Endpoint> endpoint);
  /// Closes without grace and waits for the methods that still run.
  ~InprocServer() override;

  std::string Address() const override { return address_.ToString(); }
  int Port() const override { return address_.port; }
  void Close(Duration grace) override;

 private:
  const std::shared_ptr<Registry> registry_;
  const HostPort address_;
  const std::shared_ptr<Endpoint> endpoint_;
  std::atomic<bool> closed_ = false;
};

}  // namespace weir::rpc
