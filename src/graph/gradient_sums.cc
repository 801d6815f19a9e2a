#include "graph/gradient_sums.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace weir::graph {

GradientSums::GradientSums(GraphDef& graph, FreshNames& names, const DeviceNumbers& devices,
                           std::string prefix)
    : graph_(graph), names_(names), devices_(devices), prefix_(std::move(prefix)) {}

void GradientSums::Add(const Edge& tensor, const Edge& gradient, int stage, int device) {
  contributions_[{tensor.node, tensor.output}].push_back(
      {.gradient = gradient, .stage = stage, .device = device});
}

bool GradientSums::Has(const Edge& tensor) const {
  return contributions_.contains({tensor.node, tensor.output});
}

Edge GradientSums::Total(const Edge& tensor) {
  const Key key(tensor.node, tensor.output);
  if (const auto known = totals_.find(key); known != totals_.end()) return known->second;

  std::vector<Contribution> all = contributions_[key];
  std::ranges::stable_sort(all, {}, [](const Contribution& contribution) {
    return std::tuple(-contribution.stage, contribution.device);
  });
  std::vector<int> devices;  // in the order of their latest contribution
  std::map<int, std::vector<Edge>> parts;
  for (const Contribution& contribution : all) {
    std::vector<Edge>& part = parts[contribution.device];
    if (part.empty()) devices.push_back(contribution.device);
    part.push_back(contribution.gradient);
  }
  std::vector<Edge> sums;
  for (const int device : devices) {
    const std::vector<Edge>& part = parts[device];
    sums.push_back(part.size() == 1 ? part.front() : Sum(tensor, part, device));
  }
  const Edge total =
      sums.size() == 1 ? sums.front() : Sum(tensor, sums, devices_.of_node(tensor.node));
  totals_.emplace(key, total);
  return total;
}

Edge GradientSums::Sum(const Edge& tensor, const std::vector<Edge>& parts, int device) {
  Node node;
  node.name = names_.Make(absl::StrCat(prefix_, "/sum/", TensorNamePart(graph_, tensor)));
  node.op = "SumGradients";
  node.inputs = parts;
  node.device = devices_.name(device);
  node.outputs = {InfoOf(graph_, tensor)};
  node.outputs[0].differentiable = false;
  graph_.nodes.push_back(std::move(node));
  return {.node = static_cast<int>(graph_.nodes.size()) - 1, .output = 0};
}

}  // namespace weir::graph
