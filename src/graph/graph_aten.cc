// Graph::Aten: from arguments to a checked node.
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/aten_binding.h"
#include "graph/aten_schema.h"
#include "graph/graph_draft.h"
#include "weir/graph.h"

namespace weir {
namespace {

// "aten::_softmax" makes nodes named "softmax".
std::string ShortName(const std::string& op) {
  const std::size_t colon = op.rfind(':');
  std::string name = colon == std::string::npos ? op : op.substr(colon + 1);
  name.erase(0, name.find_first_not_of('_'));
  return name.empty() ? "Aten" : name;
}

}  // namespace

void Graph::BindAten(Draft& draft, std::vector<AtenArg> args) {
  for (AtenArg& arg : args) {
    if (const auto* value = std::get_if<AttrValue>(&arg)) {
      const auto* tensor = std::get_if<at::Tensor>(value);
      if (tensor != nullptr) arg = Const(*tensor, draft.node.name + "/const");
    } else if (const auto* output = std::get_if<Output>(&arg)) {
      if (output->valid()) CheckOutput(draft, *output);
    } else {
      for (const Output& element : std::get<std::vector<Output>>(arg)) {
        if (element.valid()) CheckOutput(draft, element);
      }
    }
  }
  if (!draft.ok) return;
  const auto op = graph::AtenOperator::Find(std::get<std::string>(draft.node.attrs["operator"]),
                                            std::get<std::string>(draft.node.attrs["overload"]));
  if (!op.ok()) {
    Fail(draft, op.status());
    return;
  }
  draft.node.outputs.resize(static_cast<std::size_t>(op->num_outputs().value_or(1)));
  if (const absl::Status status = graph::BindArguments(*op, args, draft.node); !status.ok()) {
    Fail(draft, status);
  }
}

std::vector<Output> Graph::Aten(const std::string& op, const std::string& overload,
                                std::vector<AtenArg> args, const std::string& name) {
  Draft draft = Begin("Aten", name.empty() ? ShortName(op) : name);
  draft.node.attrs["operator"] = op;
  draft.node.attrs["overload"] = overload;
  BindAten(draft, std::move(args));
  return OutputsOf(Finish(std::move(draft)));
}

}  // namespace weir
