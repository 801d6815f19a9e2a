#include "rpc/grpc/server.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <limits>
#include <utility>

#include "base/status.h"
#include "rpc/grpc/deadline.h"
#include "rpc/grpc/port_probe.h"

namespace weir::rpc {
namespace {

// Calls of workers end soon by themselves; those of masters may wait for tasks that come late.
constexpr int kWorkerThreads = 8;
constexpr int kMasterThreads = 16;

}  // namespace

absl::StatusOr<std::unique_ptr<ControlServer>> GrpcServer::Start(const std::string& host, int port,
                                                                 TaskService* service) {
  WEIR_ASSIGN_OR_RETURN(HostPort address, HostPort::Parse(HostPort{host, port}.ToString()));
  WEIR_RETURN_IF_ERROR(ProbePort(address));
  std::unique_ptr<GrpcServer> server(new GrpcServer(std::move(address), service));
  WEIR_RETURN_IF_ERROR(server->Listen());
  return server;
}

GrpcServer::GrpcServer(HostPort address, TaskService* service)
    : address_(std::move(address)),
      checked_(service),
      worker_threads_(NewPoolScheduler(kWorkerThreads)),
      master_threads_(NewPoolScheduler(kMasterThreads)),
      task_service_(&checked_, worker_threads_.get(), master_threads_.get()) {}

GrpcServer::~GrpcServer() {
  Close(Duration::zero());
  for (Scheduler* threads : {worker_threads_.get(), master_threads_.get()}) {
    threads->Close();
    threads->Join();
  }
}

absl::Status GrpcServer::Listen() {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address_.ToString(), grpc::InsecureServerCredentials(), &port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(std::numeric_limits<int>::max());
  builder.SetMaxSendMessageSize(std::numeric_limits<int>::max());
  builder.RegisterService(&task_service_);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) {
    return absl::UnavailableError("cannot listen at " + address_.ToString());
  }
  address_.port = port;
  return absl::OkStatus();
}

void GrpcServer::Close(Duration grace) {
  if (server_ != nullptr) {
    server_->Shutdown(ToGrpcTime(std::chrono::steady_clock::now() + grace));
  }
}

}  // namespace weir::rpc
