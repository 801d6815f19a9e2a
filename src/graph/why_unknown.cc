#include "graph/why_unknown.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/node_util.h"
#include "graph/op_registry.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace weir::graph {
namespace {

std::string Describe(const OutputInfo& info) {
  return absl::StrCat(DtypeName(info.dtype), ShapeToString(info.shape));
}

}  // namespace

std::string WhyUnknown(const GraphDef& graph, int node) {
  while (NodeAt(graph, node).op == "Aten") {
    const Node& current = NodeAt(graph, node);
    const auto inputs =
        std::vector<Edge>(current.inputs.begin(), current.inputs.begin() + NumDataInputs(current));
    const auto unknown = std::find_if(inputs.begin(), inputs.end(), [&](const Edge& input) {
      return InfoOf(graph, input).dtype == at::ScalarType::Undefined;
    });
    if (unknown != inputs.end()) {
      node = unknown->node;
      continue;
    }
    return absl::StrCat(
        "; node '", current.name, "' (", AttrOr<std::string>(current, "operator", current.op),
        ") seems not to fit its inputs ",
        absl::StrJoin(inputs, ", ", [&](std::string* out, const Edge& input) {
          absl::StrAppend(out, "'", TensorName(graph, input), "' ", Describe(InfoOf(graph, input)));
        }));
  }
  return "";
}

}  // namespace weir::graph
