// Which operators of the dispatcher may be nodes of a graph: those that change nothing and whose
// outputs follow from their inputs.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "weir/graph.h"

namespace weir::graph {

/// What can be said from the operator alone. InvalidArgument with the operator, the reason, what to
/// use instead where there is something, and the schema.
absl::Status CheckPure(const c10::OperatorHandle& op);

/// What depends on the arguments: statistics that are updated in training, dropout that is on.
/// `is_none(argument)` tells whether a tensor argument is None, `value(argument)` gives a constant
/// one. REQUIRES: CheckPure(op) is OK.
absl::Status CheckPureCall(const c10::OperatorHandle& op,
                           const std::function<bool(const std::string&)>& is_none,
                           const std::function<c10::IValue(const std::string&)>& value);

}  // namespace weir::graph
