// Which gRPC this build runs on.
#pragma once

#include <string>

namespace weir::rpc {

/// "1.51.1".
std::string GrpcVersion();

}  // namespace weir::rpc
