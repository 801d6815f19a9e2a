#include "rpc/grpc/status_proto.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace weir::rpc {
namespace {

bool IsCode(int code) {
  return code >= 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
}

}  // namespace

void ToProto(const absl::Status& status, v1::Status* proto) {
  proto->set_code(status.raw_code());
  proto->set_message(std::string(status.message()));
}

absl::Status FromProto(const v1::Status& proto) {
  if (!IsCode(proto.code())) {
    return absl::UnknownError(absl::StrCat("status code ", proto.code(), ": ", proto.message()));
  }
  return {static_cast<absl::StatusCode>(proto.code()), proto.message()};
}

}  // namespace weir::rpc
