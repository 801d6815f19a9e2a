#include "tensor/shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weir {

std::string ShapeToString(const std::optional<std::vector<std::int64_t>>& shape) {
  if (!shape.has_value()) return "[...]";
  const auto dimension = [](std::string* out, std::int64_t dim) {
    if (dim < 0) {
      out->append("?");
    } else {
      absl::StrAppend(out, dim);
    }
  };
  return absl::StrCat("[", absl::StrJoin(*shape, ", ", dimension), "]");
}

bool ShapeAllows(const std::optional<std::vector<std::int64_t>>& shape, at::IntArrayRef dims) {
  if (!shape.has_value()) return true;
  if (shape->size() != dims.size()) return false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if ((*shape)[i] >= 0 && (*shape)[i] != dims[i]) return false;
  }
  return true;
}

}  // namespace weir
