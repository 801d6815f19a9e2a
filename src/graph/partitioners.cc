#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "weir/partitioner.h"

namespace weir {
namespace {

using Dims = std::vector<std::int64_t>;

// Each slice is a variable with nodes of its own, on some task. More of them than this are a
// mistake in units.
constexpr std::int64_t kSlicesMax = 1 << 14;

absl::Status CheckAxis(const Dims& shape, int axis) {
  if (axis >= 0 && axis < static_cast<int>(shape.size())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot be partitioned along axis ", axis, ": it has ", shape.size(), " axes"));
}

absl::Status CheckPositive(const char* name, std::int64_t value) {
  if (value > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " = ", value, " must be more than 0"));
}

std::int64_t DivideUp(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// Bytes of the variable where the index along `axis` is fixed. Shapes have been checked: no
/// overflow.
std::int64_t BytesOfSlice(const Dims& shape, at::ScalarType dtype, int axis) {
  auto bytes = static_cast<std::int64_t>(c10::elementSize(dtype));
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (i != static_cast<std::size_t>(axis)) bytes *= shape[i];
  return bytes;
}

absl::StatusOr<Slicing> Within(std::int64_t count, const Dims& shape, int axis) {
  count = std::max<std::int64_t>(1, std::min(count, shape[static_cast<std::size_t>(axis)]));
  if (count > kSlicesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("would be cut into ", count, " slices along axis ", axis, ", more than ",
                     kSlicesMax, ": ask for larger slices or for fewer of them"));
  }
  return Slicing{.count = static_cast<int>(count), .axis = axis};
}

}  // namespace

Partitioner FixedSizePartitioner(int num_shards, int axis) {
  return [=](const Dims& shape, at::ScalarType) -> absl::StatusOr<Slicing> {
    WEIR_RETURN_IF_ERROR(CheckPositive("num_shards", num_shards));
    WEIR_RETURN_IF_ERROR(CheckAxis(shape, axis));
    return Within(num_shards, shape, axis);
  };
}

Partitioner VariableAxisSizePartitioner(std::int64_t max_shard_bytes, int axis, int max_shards) {
  return [=](const Dims& shape, at::ScalarType dtype) -> absl::StatusOr<Slicing> {
    WEIR_RETURN_IF_ERROR(CheckPositive("max_shard_bytes", max_shard_bytes));
    if (max_shards != 0) WEIR_RETURN_IF_ERROR(CheckPositive("max_shards", max_shards));
    WEIR_RETURN_IF_ERROR(CheckAxis(shape, axis));
    const std::int64_t slice = std::max<std::int64_t>(1, BytesOfSlice(shape, dtype, axis));
    const std::int64_t per_shard = std::max<std::int64_t>(1, max_shard_bytes / slice);
    const std::int64_t count = DivideUp(shape[static_cast<std::size_t>(axis)], per_shard);
    return Within(max_shards == 0 ? count : std::min<std::int64_t>(count, max_shards), shape, axis);
  };
}

Partitioner MinMaxPartitioner(int max_partitions, int axis, std::int64_t min_slice_bytes) {
  return [=](const Dims& shape, at::ScalarType dtype) -> absl::StatusOr<Slicing> {
    WEIR_RETURN_IF_ERROR(CheckPositive("max_partitions", max_partitions));
    WEIR_RETURN_IF_ERROR(CheckPositive("min_slice_bytes", min_slice_bytes));
    WEIR_RETURN_IF_ERROR(CheckAxis(shape, axis));
    const std::int64_t bytes =
        BytesOfSlice(shape, dtype, axis) * shape[static_cast<std::size_t>(axis)];
    return Within(std::min<std::int64_t>(max_partitions, DivideUp(bytes, min_slice_bytes)), shape,
                  axis);
  };
}

Partitioner AutoPartitioner(int ps_tasks, std::int64_t min_slice_bytes) {
  return [=](const Dims& shape, at::ScalarType dtype) -> absl::StatusOr<Slicing> {
    if (ps_tasks <= 1 || shape.empty()) return Slicing{};
    return MinMaxPartitioner(ps_tasks, 0, min_slice_bytes)(shape, dtype);
  };
}

}  // namespace weir
