// Names of nodes, as the original writes them (TensorFlow 1.14, python/framework/ops.py,
// _VALID_OP_NAME_REGEX).
#pragma once

#include <string_view>

namespace weir::graph {

/// [A-Za-z0-9.] and then any number of [A-Za-z0-9_.\-/].
bool IsNodeName(std::string_view name);

}  // namespace weir::graph
