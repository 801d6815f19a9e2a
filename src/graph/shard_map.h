// Where the slices of a graph's variables are.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weir/graph.h"

namespace weir::graph {

/// One slice of a variable, a variable of its own in the store of some task.
struct Slice {
  std::string name;
  std::int64_t size = 0;  // along the axis
  std::string device;     // requested; may be partial or empty
};

struct SlicedVariable {
  int axis = 0;
  RowLayout layout = RowLayout::kDiv;
  std::vector<Slice> slices;

  std::vector<std::int64_t> sizes() const;
};

/// Graphs name logical variables; this says how they are cut, by name. A variable that is not in it
/// is whole. The version grows when slices move.
struct ShardMap {
  std::uint64_t version = 0;
  std::map<std::string, SlicedVariable> variables;
};

/// "w/part_0": the name of a slice, as the original's.
std::string SliceName(const std::string& variable, std::size_t index);

/// The map that the graph was built with. InvalidArgument for a Variable node whose attributes make
/// no slices: it may come from anywhere.
absl::StatusOr<ShardMap> ShardMapOf(const GraphDef& graph);

}  // namespace weir::graph
