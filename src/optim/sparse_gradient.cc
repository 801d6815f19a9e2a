#include "optim/sparse_gradient.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "base/status.h"
#include "store/dense.h"
#include "store/row_ids.h"

namespace weir::optim {
namespace {

std::span<const std::int64_t> IndicesOf(const SparseGradient& gradient) {
  return {gradient.indices.const_data_ptr<std::int64_t>(),
          static_cast<std::size_t>(gradient.indices.numel())};
}

/// Positions of `indices` so that what they point at rises; equal ones stay in order.
std::vector<std::size_t> SortedPositions(std::span<const std::int64_t> indices) {
  std::vector<std::size_t> positions(indices.size());
  std::iota(positions.begin(), positions.end(), 0);
  std::ranges::stable_sort(positions, {}, [&](std::size_t at) { return indices[at]; });
  return positions;
}

template <typename T>
SparseGradient Sum(const SparseGradient& gradient) {
  const auto indices = IndicesOf(gradient);
  const std::int64_t width = gradient.values.numel() / gradient.values.size(0);
  const T* const from = gradient.values.const_data_ptr<T>();
  SparseGradient sum{.indices = at::empty_like(gradient.indices),
                     .values = at::empty_like(gradient.values)};
  auto* const rows = sum.indices.mutable_data_ptr<std::int64_t>();
  T* const to = sum.values.mutable_data_ptr<T>();
  std::int64_t count = 0;
  for (const std::size_t position : SortedPositions(indices)) {
    const T* const row = from + static_cast<std::int64_t>(position) * width;
    if (count > 0 && rows[count - 1] == indices[position]) {
      T* const total = to + (count - 1) * width;
      std::transform(row, row + width, total, total, [](T a, T b) { return b + a; });
    } else {
      rows[count] = indices[position];
      std::copy_n(row, width, to + count * width);
      ++count;
    }
  }
  return {.indices = sum.indices.narrow(0, 0, count), .values = sum.values.narrow(0, 0, count)};
}

// For the types that no optimizer trains, but that rows may be added to all the same.
SparseGradient SumByLibtorch(const SparseGradient& gradient) {
  const auto [rows, positions, counts] =
      at::_unique2(gradient.indices, /*sorted=*/true, /*return_inverse=*/true);
  std::vector<std::int64_t> shape = gradient.values.sizes().vec();
  shape[0] = rows.numel();
  const at::Tensor sums = at::zeros(shape, gradient.values.options());
  return {.indices = rows, .values = sums.index_add_(0, positions, gradient.values)};
}

}  // namespace

absl::StatusOr<SparseGradient> CheckSparseGradient(const store::Variable& variable,
                                                   const at::Tensor& indices,
                                                   const at::Tensor& values) {
  constexpr char kWhat[] = "sparse gradient";
  const store::VariableDef& def = variable.def();
  SparseGradient gradient;
  WEIR_ASSIGN_OR_RETURN(gradient.indices, store::CheckRowIds(def, indices, kWhat));
  WEIR_RETURN_IF_ERROR(store::CheckRows(def, gradient.indices, values, kWhat));
  gradient.values = store::ToPlain(values);
  return gradient;
}

SparseGradient KeepLast(const SparseGradient& rows) {
  const auto indices = IndicesOf(rows);
  const std::vector<std::size_t> positions = SortedPositions(indices);
  std::vector<std::int64_t> last;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const bool is_last =
        i + 1 == positions.size() || indices[positions[i]] != indices[positions[i + 1]];
    if (is_last) last.push_back(static_cast<std::int64_t>(positions[i]));
  }
  const at::Tensor kept = at::tensor(last, at::kLong);
  return {.indices = at::index_select(rows.indices, 0, kept),
          .values = at::index_select(rows.values, 0, kept)};
}

SparseGradient SumDuplicates(const SparseGradient& gradient) {
  const auto indices = IndicesOf(gradient);
  if (std::ranges::adjacent_find(indices, std::greater_equal<>()) == indices.end()) {
    return gradient;
  }
  switch (gradient.values.scalar_type()) {
    case at::kFloat:
      return Sum<float>(gradient);
    case at::kDouble:
      return Sum<double>(gradient);
    default:
      return SumByLibtorch(gradient);
  }
}

}  // namespace weir::optim
