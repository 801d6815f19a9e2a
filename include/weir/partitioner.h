// Big variables in slices, each on a task of its own.
//
// A partitioned variable is one variable to the model: it is read, looked up, assigned and trained
// under one name. Its slices "<name>/part_0", "<name>/part_1", ... are dealt out by the device
// scopes like variables of their own, and only what a step needs of them travels.
//
//   graph.Variable("table", weir::Uniform({50'000'000, 64}, -0.1, 0.1),
//                  {.partitioner = weir::AutoPartitioner(ps_tasks),
//                   .layout = weir::RowLayout::kMod});
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"

namespace weir {

/// In how many slices a variable is cut, along which axis. One slice: it is not cut.
struct Slicing {
  int count = 1;
  int axis = 0;
};

/// Decides by shape and dtype. An error is one of the graph, with the variable's name.
using Partitioner = std::function<absl::StatusOr<Slicing>(const std::vector<std::int64_t>& shape,
                                                          at::ScalarType dtype)>;

/// Which rows make up a slice. Belongs to the variable, so that nobody can look rows up in another
/// order than they are stored in.
enum class RowLayout : std::uint8_t {
  kDiv = 0,  // ranges of rows; the first (rows mod slices) have one more. The original's default
  kMod = 1,  // row r in slice r mod slices: spreads the frequent ids of a sorted vocabulary. Axis 0
};

// More than 16,384 slices are InvalidArgument for all of these.

/// min(num_shards, dim) slices. TensorFlow's fixed_size_partitioner.
Partitioner FixedSizePartitioner(int num_shards, int axis = 0);

/// As many slices as are needed for none to have more than `max_shard_bytes` (a single row may);
/// at most `max_shards`, 0 for no limit. TensorFlow's variable_axis_size_partitioner.
Partitioner VariableAxisSizePartitioner(std::int64_t max_shard_bytes, int axis = 0,
                                        int max_shards = 0);

/// One slice for every `min_slice_bytes` begun, so that slices have from half of that up; at most
/// `max_partitions` and the dimension, at least 1. TensorFlow's min_max_variable_partitioner.
Partitioner MinMaxPartitioner(int max_partitions = 1, int axis = 0,
                              std::int64_t min_slice_bytes = 256 << 10);

/// For variables spread over `ps_tasks` by bytes: what is large goes to all of them in equal parts,
/// what has no more than `min_slice_bytes` stays whole. MinMaxPartitioner along axis 0: 5 MiB
/// become two slices of 2.5.
Partitioner AutoPartitioner(int ps_tasks, std::int64_t min_slice_bytes = 4 << 20);

}  // namespace weir
