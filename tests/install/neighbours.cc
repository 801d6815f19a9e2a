#include "neighbours.h"

#include <ATen/core/Tensor.h>
#include <google/protobuf/message.h>
#include <spdlog/spdlog.h>

void CheckNeighbours() {
  GOOGLE_PROTOBUF_VERIFY_VERSION;
  spdlog::info("protobuf {} and fmt {} beside Weir", GOOGLE_PROTOBUF_VERSION, FMT_VERSION);
}
