// Attributes of an Aten node as arguments of an operator.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include "absl/status/statusor.h"
#include "weir/graph.h"

namespace weir::graph {

/// `value` as what `argument` of a schema takes. An int goes where a float is taken, and one number
/// where a list of a fixed length is (int[2]). InvalidArgument says what is taken and what was
/// given.
absl::StatusOr<c10::IValue> ToArgument(const AttrValue& value, const c10::Argument& argument);

/// The argument is a device, a layout or another property of placement that the graph decides, so
/// that it must be None.
bool IsPlacement(const c10::Argument& argument);

/// The type of `argument`, without the optional around it.
c10::TypePtr CoreType(const c10::Argument& argument);

}  // namespace weir::graph
