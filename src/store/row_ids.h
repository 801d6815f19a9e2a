// Numbers of rows of a variable, which may have come from anywhere.
#pragma once

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"
#include "store/variable.h"

namespace weir::store {

/// `ids` as a plain int64 list. InvalidArgument names the variable, and what is wrong: an id that
/// is no row of it (with the id and the number of rows), a scalar that has none, a tensor that is
/// no list of int32 or int64. `what` begins the message: "ids of a gather".
absl::StatusOr<at::Tensor> CheckRowIds(const VariableDef& variable, const at::Tensor& ids,
                                       const char* what);

/// InvalidArgument unless `values` has one row of the variable's shape and dtype for each id.
absl::Status CheckRows(const VariableDef& variable, const at::Tensor& ids, const at::Tensor& values,
                       const char* what);

}  // namespace weir::store
