#include "store/row_ids.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "store/dense.h"

namespace weir::store {
namespace {

std::string Describe(const at::Tensor& ids) {
  return ids.defined() ? DescribeTensor(ids.scalar_type(), ids.sizes()) : "absent";
}

bool IsListOfIntegers(const at::Tensor& ids) {
  return ids.defined() && ids.device().is_cpu() && ids.layout() == at::kStrided && ids.dim() == 1 &&
         (ids.scalar_type() == at::kLong || ids.scalar_type() == at::kInt);
}

}  // namespace

absl::StatusOr<at::Tensor> CheckRowIds(const VariableDef& variable, const at::Tensor& ids,
                                       const char* what) {
  if (variable.initializer.shape.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": variable \"", variable.name, "\" is a scalar and has no rows"));
  }
  if (!IsListOfIntegers(ids)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " for variable \"", variable.name, "\": the ids are ", Describe(ids),
                     " but must be a dense list of int64 or int32 in host memory"));
  }
  at::Tensor plain = ToPlain(ids.to(at::kLong));
  const std::int64_t rows = variable.initializer.shape[0];
  const std::span<const std::int64_t> all(plain.const_data_ptr<std::int64_t>(),
                                          static_cast<std::size_t>(plain.numel()));
  const auto bad = std::ranges::find_if(all, [&](std::int64_t id) { return id < 0 || id >= rows; });
  if (bad == all.end()) return plain;
  return absl::InvalidArgumentError(absl::StrCat(what, ": id ", *bad, " at position ",
                                                 bad - all.begin(), " is out of range: variable \"",
                                                 variable.name, "\" has ", rows, " rows"));
}

absl::Status CheckRows(const VariableDef& variable, const at::Tensor& ids, const at::Tensor& values,
                       const char* what) {
  std::vector<std::int64_t> shape = variable.initializer.shape;
  shape[0] = ids.numel();
  return CheckDense(values, variable.initializer.dtype, shape,
                    absl::StrCat(what, " of variable \"", variable.name, "\""));
}

}  // namespace weir::store
