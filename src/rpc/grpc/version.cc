#include "rpc/grpc/version.h"

#include <grpcpp/grpcpp.h>

namespace weir::rpc {

std::string GrpcVersion() {
  return grpc::Version();
}

}  // namespace weir::rpc
