// Session::Connect: defined up here because it needs gRPC and TCP, which the runtime does not know.
#include "cli/production.h"
#include "runtime/remote_session.h"
#include "weir/session.h"

namespace weir {

absl::StatusOr<Session> Session::Connect(const std::string& target, const Graph& graph,
                                         const SessionOptions& options) {
  constexpr char kScheme[] = "grpc://";
  if (target.rfind(kScheme, 0) != 0) {
    return absl::InvalidArgumentError("session target '" + target + "': expected grpc://host:port");
  }
  return runtime::ConnectSession(cli::ProductionClientParts(), target.substr(sizeof(kScheme) - 1),
                                 graph, options);
}

}  // namespace weir
