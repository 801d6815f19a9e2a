#include "rpc/inproc/control_plane.h"

#include <utility>

#include "base/status.h"
#include "rpc/inproc/call_list.h"
#include "rpc/inproc/client.h"
#include "rpc/inproc/server.h"

namespace weir::rpc {
namespace {

class InprocControlPlane final : public ControlPlane {
 public:
  InprocControlPlane(std::shared_ptr<Registry> registry, Scheduler* scheduler)
      : registry_(std::move(registry)), scheduler_(scheduler) {}
  ~InprocControlPlane() override { calls_->Close(); }

  void Close() override { calls_->Close(); }

  absl::StatusOr<std::unique_ptr<ControlServer>> Serve(const std::string& host, int port,
                                                       TaskService* service) override {
    auto endpoint = std::make_shared<Endpoint>(scheduler_, service);
    WEIR_ASSIGN_OR_RETURN(HostPort address, registry_->Add(host, port, endpoint));
    return std::make_unique<InprocServer>(registry_, std::move(address), std::move(endpoint));
  }

  std::shared_ptr<TaskClient> NewClient(const std::string& address) override {
    return std::make_shared<InprocClient>(registry_, scheduler_, address, calls_);
  }

 private:
  const std::shared_ptr<Registry> registry_;
  Scheduler* const scheduler_;
  const std::shared_ptr<CallList> calls_ = std::make_shared<CallList>();
};

}  // namespace

Network::Network() : registry_(std::make_shared<Registry>()) {}

std::unique_ptr<ControlPlane> Network::NewControlPlane(Scheduler* scheduler) {
  return std::make_unique<InprocControlPlane>(registry_, scheduler);
}

void Network::SetReachable(const std::string& address, bool reachable) {
  const absl::StatusOr<HostPort> parsed = HostPort::Parse(address);
  if (parsed.ok()) registry_->SetReachable(*parsed, reachable);
}

void Network::SetDelay(Duration delay) {
  registry_->SetDelay(delay);
}

}  // namespace weir::rpc
