#include "strategy/gradient_options.h"

#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weir::strategy {
namespace {

using Gradients = std::span<VariableGradient>;

void AddWeightDecay(VariableGradient& part, double rate) {
  Graph& graph = *part.gradient.graph();
  if (part.is_sparse()) {
    graph.AddError(absl::InvalidArgumentError(absl::StrCat(
        "Minimize: variable '", part.variable.name(),
        "' has a sparse gradient, and the weights for weight_decay are not here: use AdamW, or a "
        "term of the loss over the rows that were looked up")));
    return;
  }
  Node node;
  node.name = part.variable.name() + "/weight_decay";
  node.op = "AddWeightDecay";
  node.inputs = {{part.gradient.node(), part.gradient.index()},
                 {part.variable.read().node(), part.variable.read().index()}};
  node.attrs["rate"] = rate;
  part.gradient = Output(&graph, graph.AddNode(std::move(node)).node(), 0);
}

// One node over all of `parts`.
void AddClip(Gradients parts, const std::string& name, const char* by, double bound) {
  Node node;
  node.name = name;
  node.op = "ClipGradients";
  node.attrs = {{"by", by}, {"bound", bound}};
  for (const VariableGradient& part : parts)
    node.inputs.push_back({part.gradient.node(), part.gradient.index()});
  const Operation clip = parts.front().gradient.graph()->AddNode(std::move(node));
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i].gradient = Output(clip.graph(), clip.node(), static_cast<int>(i));
}

void ClipEach(Gradients gradients, const char* by, double bound) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    AddClip(gradients.subspan(i, 1), absl::StrCat(gradients[i].variable.name(), "/clip_by_", by),
            by, bound);
  }
}

// False where there is nothing to do, or an error.
bool IsOn(Graph& graph, const char* name, double value) {
  if (value == 0) return false;
  if (value > 0 && std::isfinite(value)) return true;
  graph.AddError(absl::InvalidArgumentError(absl::StrCat(
      "Minimize: ", name, " = ", value, " must be a finite number that is 0 (off) or more")));
  return false;
}

}  // namespace

void ApplyOptions(const GradientOptions& options, std::vector<VariableGradient>& gradients) {
  if (gradients.empty()) return;
  Graph& graph = *gradients.front().gradient.graph();
  if (IsOn(graph, "weight_decay", options.weight_decay))
    for (VariableGradient& gradient : gradients) AddWeightDecay(gradient, options.weight_decay);
  if (IsOn(graph, "clip_value", options.clip_value))
    ClipEach(gradients, "value", options.clip_value);
  if (IsOn(graph, "clip_norm", options.clip_norm)) ClipEach(gradients, "norm", options.clip_norm);
  if (IsOn(graph, "clip_global_norm", options.clip_global_norm))
    AddClip(gradients, "clip_by_global_norm", "global_norm", options.clip_global_norm);
}

}  // namespace weir::strategy
