#include "rpc/grpc/control_plane.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/health_check_service_interface.h>

#include <mutex>
#include <string>
#include <utility>

#include "rpc/grpc/call_queue.h"
#include "rpc/grpc/client.h"
#include "rpc/grpc/server.h"

namespace weir::rpc {
namespace {

/// gRPC keeps these for the whole process. It is initialised once more than it would be by its
/// objects, so that it stays when they go: taking it down may wait 10 s for a thread that polls.
void SetUpGrpc() {
  static std::once_flag once;
  std::call_once(once, [] {
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
    grpc_init();
    grpc::EnableDefaultHealthCheckService(true);
  });
}

class GrpcControlPlane final : public ControlPlane {
 public:
  explicit GrpcControlPlane(const GrpcOptions& options) : options_(options) { SetUpGrpc(); }
  ~GrpcControlPlane() override { Close(); }

  void Close() override {
    std::call_once(closed_, [this] { calls_->CloseAndWait(); });
  }

  absl::StatusOr<std::unique_ptr<ControlServer>> Serve(const std::string& host, int port,
                                                       TaskService* service) override {
    return GrpcServer::Start(host, port, service);
  }

  std::shared_ptr<TaskClient> NewClient(const std::string& address) override {
    return std::make_shared<GrpcClient>(address, options_, calls_);
  }

 private:
  const GrpcOptions options_;
  std::once_flag closed_;
  const std::shared_ptr<CallQueue> calls_ = std::make_shared<CallQueue>();
};

}  // namespace

std::unique_ptr<ControlPlane> NewGrpcControlPlane(const GrpcOptions& options) {
  return std::make_unique<GrpcControlPlane>(options);
}

}  // namespace weir::rpc
