// The server of the gRPC control plane.
#pragma once

#include <grpcpp/server.h>

#include <memory>
#include <string>

#include "cluster/host_port.h"
#include "rpc/checked_service.h"
#include "rpc/control_plane.h"
#include "rpc/grpc/task_service.h"

namespace weir::rpc {

class GrpcServer final : public ControlServer {
 public:
  /// See ControlPlane::Serve.
  static absl::StatusOr<std::unique_ptr<ControlServer>> Start(const std::string& host, int port,
                                                              TaskService* service);
  /// Closes without grace and waits for the methods that still run. Not on a thread of the server.
  ~GrpcServer() override;

  std::string Address() const override { return address_.ToString(); }
  int Port() const override { return address_.port; }
  void Close(Duration grace) override;

 private:
  GrpcServer(HostPort address, TaskService* service);
  absl::Status Listen();

  HostPort address_;
  CheckedService checked_;
  const std::unique_ptr<Scheduler> worker_threads_;
  const std::unique_ptr<Scheduler> master_threads_;
  GrpcTaskService task_service_;
  std::unique_ptr<grpc::Server> server_;  // null: it could not listen
};

}  // namespace weir::rpc
