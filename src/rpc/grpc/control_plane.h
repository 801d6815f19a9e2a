// The control plane of production: gRPC, without TLS so far.
#pragma once

#include <memory>

#include "rpc/control_plane.h"
#include "rpc/grpc/options.h"

namespace weir::rpc {

/// Servers also answer the standard health checks (grpc.health.v1). Services run on threads of the
/// server's own, so that calls which wait for other tasks (OpenSession, MakePlan) do not keep those
/// from running that others wait for; replies run on two threads of the plane. Proxies named by the
/// environment are not used. Destroying the plane returns when the last reply has run, so that it
/// must not be done in one.
std::unique_ptr<ControlPlane> NewGrpcControlPlane(const GrpcOptions& options = {});

}  // namespace weir::rpc
