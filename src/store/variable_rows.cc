// Reads and updates of some rows of a variable.
#include <ATen/Functions.h>

#include <utility>
#include <vector>

#include "store/dense.h"
#include "store/hogwild.h"
#include "store/row_ids.h"
#include "store/run_initializer.h"
#include "store/variable.h"

namespace weir::store {

absl::StatusOr<Snapshot> Variable::ReadRows(const at::Tensor& ids) const {
  WEIR_RETURN_IF_ERROR(CheckInitialized());
  WEIR_ASSIGN_OR_RETURN(const at::Tensor plain, CheckRowIds(def_, ids, "gather"));
  std::vector<std::int64_t> shape = def_.initializer.shape;
  shape[0] = plain.numel();
  WEIR_ASSIGN_OR_RETURN(at::Tensor rows, AllocateTensor(shape, def_.initializer.dtype, def_.name));
  const std::size_t row_bytes =
      rows.numel() == 0 ? 0 : rows.nbytes() / static_cast<std::size_t>(rows.size(0));
  const std::uint64_t at_least = Consistently([&] {
    const std::uint64_t before = version();
    const auto* from = static_cast<const char*>(buffer_.const_data_ptr());
    auto* to = static_cast<char*>(rows.mutable_data_ptr());
    const auto* id = plain.const_data_ptr<std::int64_t>();
    for (std::int64_t k = 0; row_bytes > 0 && k < plain.numel(); ++k, to += row_bytes)
      HogwildCopy(to, from + static_cast<std::size_t>(id[k]) * row_bytes, row_bytes);
    return before;
  });
  return Snapshot{std::move(rows), at_least};
}

namespace {

// What libtorch adds to `buffer` must not lie in it.
at::Tensor ApartFrom(const at::Tensor& buffer, const at::Tensor& values) {
  return values.is_alias_of(buffer) ? values.clone() : values;
}

}  // namespace

// On an alias with a version counter of its own, as AssignAdd.
absl::StatusOr<std::uint64_t> Variable::ScatterAdd(const at::Tensor& ids, const at::Tensor& values,
                                                   bool use_locking) {
  WEIR_ASSIGN_OR_RETURN(const at::Tensor plain, CheckRowIds(def_, ids, "scatter"));
  WEIR_RETURN_IF_ERROR(CheckRows(def_, plain, values, "value scattered"));
  WEIR_RETURN_IF_ERROR(CheckCanAdd());
  return Update(use_locking, [&](const at::Tensor& buffer) {
    buffer.variable_data().index_add_(0, plain, ApartFrom(buffer, ToPlain(values)));
  });
}

absl::StatusOr<std::uint64_t> Variable::ScatterUpdate(const at::Tensor& ids,
                                                      const at::Tensor& values, bool use_locking) {
  WEIR_ASSIGN_OR_RETURN(const at::Tensor plain, CheckRowIds(def_, ids, "scatter"));
  WEIR_RETURN_IF_ERROR(CheckRows(def_, plain, values, "value scattered"));
  const at::Tensor rows = ToPlain(values);
  const std::size_t row_bytes =
      rows.numel() == 0 ? 0 : rows.nbytes() / static_cast<std::size_t>(rows.size(0));
  return Update(use_locking, [&](const at::Tensor& buffer) {
    auto* to = static_cast<char*>(buffer.mutable_data_ptr());
    const auto* from = static_cast<const char*>(rows.const_data_ptr());
    const auto* id = plain.const_data_ptr<std::int64_t>();
    for (std::int64_t k = 0; row_bytes > 0 && k < plain.numel(); ++k, from += row_bytes)
      HogwildCopy(to + static_cast<std::size_t>(id[k]) * row_bytes, from, row_bytes);
  });
}

}  // namespace weir::store
