// Gradients that have values for some rows of a variable only.
#pragma once

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"
#include "store/variable.h"

namespace weir::optim {

/// Row k of `values` is the gradient of row indices[k] of the variable; several rows of values for
/// one row of the variable mean their sum.
struct SparseGradient {
  at::Tensor indices;  // int64 [n], plain
  at::Tensor values;   // [n, ...] with the rest of the variable's shape, of its dtype, plain
};

/// A SparseGradient of what has come from elsewhere. InvalidArgument names the variable, and what
/// is wrong: an index that is no row of it (with the index and the number of rows), a shape or
/// dtype, a scalar variable that has no rows.
absl::StatusOr<SparseGradient> CheckSparseGradient(const store::Variable& variable,
                                                   const at::Tensor& indices,
                                                   const at::Tensor& values);

/// The same gradient with rising indices, each once. Values for one row are summed in the order in
/// which they stand. Of any dtype that can be added. Costs one look at the indices when they are
/// rising already.
SparseGradient SumDuplicates(const SparseGradient& gradient);

/// As SumDuplicates, but of several values for one row the last one stays.
SparseGradient KeepLast(const SparseGradient& rows);

}  // namespace weir::optim
