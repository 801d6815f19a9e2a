#include "graph/merge_outputs.h"

#include <algorithm>
#include <cstddef>

namespace weir::graph {
namespace {

void MergeShape(const Shape& other, Shape& shape) {
  if (!shape || !other || shape->size() != other->size()) {
    shape.reset();
    return;
  }
  for (std::size_t d = 0; d < shape->size(); ++d) {
    if ((*shape)[d] != (*other)[d]) (*shape)[d] = -1;
  }
}

}  // namespace

void MergeOutputs(const std::vector<OutputInfo>& other, std::vector<OutputInfo>& outputs) {
  for (std::size_t i = 0; i < std::min(outputs.size(), other.size()); ++i) {
    MergeShape(other[i].shape, outputs[i].shape);
    if (outputs[i].dtype != other[i].dtype) outputs[i].dtype = at::ScalarType::Undefined;
    outputs[i].differentiable = outputs[i].differentiable || other[i].differentiable;
  }
}

}  // namespace weir::graph
