#include "graph/graph_testing.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/aten_schema.h"
#include "graph/op_registry.h"
#include "tensor/dtype.h"

namespace weir::graph {
namespace {

at::Tensor Leaf(at::Tensor tensor) {
  tensor = tensor.detach();
  if (at::isFloatingType(tensor.scalar_type())) tensor.set_requires_grad(true);
  return tensor;
}

at::Tensor ReadZeros(const Graph& graph, const Node& node) {
  const Node& variable = graph.node(node.inputs[0].node);
  return Leaf(at::zeros(AttrOr<std::vector<std::int64_t>>(variable, "shape", {}),
                        AttrOr<at::ScalarType>(variable, "dtype", at::kFloat)));
}

std::vector<at::Tensor> Call(const Node& node, const std::vector<at::Tensor>& inputs) {
  const at::AutoGradMode with_gradients(true);
  std::vector<at::Tensor> outputs;
  const auto call = AtenCall::Build(node);
  EXPECT_TRUE(call.ok()) << call.status();
  if (!call.ok()) return outputs;
  const at::Generator generator = at::detail::createCPUGenerator(7);
  const absl::Status status = call->Run(inputs, &generator, outputs);
  EXPECT_TRUE(status.ok()) << status;
  return outputs;
}

}  // namespace

Values Evaluate(const Graph& graph, const std::map<std::string, at::Tensor>& feeds) {
  Values values;
  for (const Node& node : graph.def().nodes) {
    std::vector<at::Tensor> inputs;
    for (const Edge& edge : node.inputs) {
      if (edge.is_control() || values[static_cast<std::size_t>(edge.node)].empty()) continue;
      inputs.push_back(
          values[static_cast<std::size_t>(edge.node)][static_cast<std::size_t>(edge.output)]);
    }
    std::vector<at::Tensor> outputs;
    if (node.op == "Placeholder") outputs = {Leaf(feeds.at(node.name))};
    if (node.op == "Const") outputs = {Leaf(AttrOr<at::Tensor>(node, "value", {}))};
    if (node.op == "Read") outputs = {ReadZeros(graph, node)};
    if (node.op == "Identity") outputs = inputs;
    if (node.op == "Aten") outputs = Call(node, inputs);
    values.push_back(std::move(outputs));
  }
  return values;
}

bool Describes(const OutputInfo& info, const at::Tensor& tensor) {
  if (info.dtype != tensor.scalar_type()) return false;
  if (!info.shape) return true;
  if (static_cast<std::int64_t>(info.shape->size()) != tensor.dim()) return false;
  for (std::int64_t d = 0; d < tensor.dim(); ++d) {
    const std::int64_t known = (*info.shape)[static_cast<std::size_t>(d)];
    if (known >= 0 && known != tensor.size(d)) return false;
  }
  return true;
}

std::string ToText(const OutputInfo& info) {
  return absl::StrCat(DtypeName(info.dtype), " ",
                      info.shape ? absl::StrCat("{", absl::StrJoin(*info.shape, ", "), "}") : "?",
                      info.differentiable ? " differentiable" : "");
}

}  // namespace weir::graph
