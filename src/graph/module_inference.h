// What a module's forward returns, found out by running it on zeros.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "weir/module.h"

namespace weir::graph {

/// Runs `forward` on copies of `module`, which stays as it is, in the mode of each of its parts; on
/// several sizes in the place of unknown dimensions, and what they change is unknown of the
/// outputs. An error of forward is one if no dimension is unknown, or if no size tried suits it.
/// REQUIRES: nobody changes the module meanwhile.
absl::StatusOr<std::vector<OutputInfo>> InferModule(const torch::nn::Module& module,
                                                    const ModuleForward& forward,
                                                    const std::vector<Output>& inputs);

}  // namespace weir::graph
