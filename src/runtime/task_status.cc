#include "runtime/task_status.h"

#include "tensor/dtype.h"

namespace weir::runtime {

std::vector<rpc::VariableStatus> StatusOfVariables(const store::VariableStore& store) {
  std::vector<rpc::VariableStatus> statuses;
  for (const auto& variable : store.All()) {
    const store::VariableDef& def = variable->def();
    const store::StalenessSummary staleness = variable->staleness().Summarize();
    statuses.push_back({.name = def.name,
                        .container = def.container,
                        .dtype = DtypeName(def.initializer.dtype),
                        .shape = def.initializer.shape,
                        .bytes = variable->bytes(),
                        .version = variable->version(),
                        .initialized = variable->initialized(),
                        .trainable = def.trainable,
                        .staleness = {.count = staleness.count,
                                      .p50 = staleness.p50,
                                      .p99 = staleness.p99,
                                      .max = staleness.max,
                                      .mean = staleness.mean}});
  }
  return statuses;
}

}  // namespace weir::runtime
