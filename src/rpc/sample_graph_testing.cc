#include "rpc/sample_graph_testing.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

namespace weir::rpc {
namespace {

using std::string_literals::operator""s;

Node Constant(std::string name, at::Tensor value) {
  Node node;
  node.name = std::move(name);
  node.op = "Const";
  node.outputs.push_back({value.scalar_type(), value.sizes().vec(), false});
  node.attrs["value"] = std::move(value);
  return node;
}

Node VariableNode(const std::string& name, const std::string& device) {
  Node node;
  node.name = name;
  node.op = "Variable";
  node.device = device;
  node.attrs["dtype"] = at::kFloat;
  node.attrs["shape"] = std::vector<std::int64_t>{784, 10};
  node.attrs["initializer"] = std::int64_t{3};
  node.attrs["initializer_b"] = 0.03;
  node.attrs["container"] = std::string("Größe/容器");
  node.attrs["trainable"] = true;
  node.outputs.push_back({});
  return node;
}

Node EveryAttribute() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Node node;
  node.name = "everything";
  node.op = "Function";
  node.device = "/job:worker/task:7/device:CPU:0";
  node.attrs["handle"] = std::numeric_limits<std::int64_t>::min();
  node.attrs["none"] = std::monostate();
  node.attrs["flag"] = false;
  node.attrs["real"] = -kInfinity;
  node.attrs["text"] = "zero \0 and no UTF-8 \xff\xfe"s;
  node.attrs["empty text"] = std::string();
  node.attrs["dtype"] = at::kBFloat16;
  node.attrs["no dtype"] = at::ScalarType::Undefined;
  node.attrs["tensor"] = at::arange(6, at::kLong).reshape({2, 3});
  node.attrs["no tensor"] = at::Tensor();
  node.attrs["flags"] = std::vector<bool>{true, false, true};
  node.attrs["no flags"] = std::vector<bool>();
  node.attrs["numbers"] = std::vector<std::int64_t>{-1, 0, std::int64_t{1} << 40};
  node.attrs["no numbers"] = std::vector<std::int64_t>();
  node.attrs["reals"] = std::vector<double>{0.1, -0.0, kInfinity};
  node.attrs["no reals"] = std::vector<double>();
  node.attrs["texts"] = std::vector<std::string>{"", "überall", "名前"};
  node.attrs["no texts"] = std::vector<std::string>();
  node.outputs.push_back({at::kFloat, std::nullopt, true});
  node.outputs.push_back({at::kDouble, std::vector<std::int64_t>{}, false});
  node.outputs.push_back({at::kLong, std::vector<std::int64_t>{-1, 0, 784}, true});
  return node;
}

/// An empty one, a scalar, and one with strides of its own, of every type.
void AddConstants(GraphDef& graph) {
  for (const at::ScalarType dtype :
       {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kHalf, at::kBFloat16,
        at::kFloat, at::kDouble, at::kComplexFloat, at::kComplexDouble}) {
    const std::string name = at::toString(dtype);
    graph.nodes.push_back(Constant(name + "/empty", at::empty({3, 0, 2}, dtype)));
    graph.nodes.push_back(Constant(name + "/scalar", at::full({}, 1, dtype)));
    graph.nodes.push_back(Constant(name + "/matrix", at::arange(6).reshape({2, 3}).to(dtype).t()));
  }
  at::Tensor big = at::arange(1'250'000, at::kFloat);
  big[17] = std::numeric_limits<float>::quiet_NaN();
  big[18] = -0.0F;
  graph.nodes.push_back(Constant("big", big));
}

void AddChain(GraphDef& graph, int length) {
  for (int i = 0; i < length; ++i) {
    const int last = static_cast<int>(graph.nodes.size()) - 1;
    Node node;
    node.name = absl::StrCat("chain_", i);
    node.op = "Identity";
    node.colocation = graph.nodes.back().name;
    node.inputs = {{last, 0}, {0, Edge::kControl}};
    node.outputs.push_back({at::kFloat, std::nullopt, false});
    graph.nodes.push_back(std::move(node));
  }
}

bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const at::Tensor left = a.contiguous();
  const at::Tensor right = b.contiguous();
  return left.nbytes() == 0 ||
         std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

/// NaN is itself here, and -0 is not 0.
bool SameReal(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

bool SameValue(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  if (const auto* tensor = std::get_if<at::Tensor>(&a)) {
    return SameBits(*tensor, std::get<at::Tensor>(b));
  }
  return std::visit(
      [&b](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, at::Tensor>) {
          return false;
        } else if constexpr (std::is_same_v<T, double>) {
          return SameReal(value, std::get<double>(b));
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          return std::ranges::equal(value, std::get<T>(b), SameReal);
        } else {
          return value == std::get<T>(b);
        }
      },
      a);
}

std::string AttrDifference(const AttrMap& a, const AttrMap& b) {
  for (const auto& [name, value] : a) {
    const auto found = b.find(name);
    if (found == b.end()) return "attribute '" + name + "' is missing";
    if (!SameValue(value, found->second)) return "attribute '" + name + "' differs";
  }
  return a.size() == b.size() ? "" : "more attributes";
}

bool SameOutput(const OutputInfo& a, const OutputInfo& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.differentiable == b.differentiable;
}

std::string NodeDifference(const Node& a, const Node& b) {
  if (a.name != b.name) return "name " + b.name;
  if (a.op != b.op) return "op " + b.op;
  if (a.inputs != b.inputs) return "inputs";
  if (a.device != b.device) return "device " + b.device;
  if (a.colocation != b.colocation) return "colocation " + b.colocation;
  if (!std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(),
                  SameOutput)) {
    return "outputs";
  }
  return AttrDifference(a.attrs, b.attrs);
}

}  // namespace

GraphDef SampleGraph() {
  GraphDef graph;
  graph.seed = std::numeric_limits<std::uint64_t>::max();
  graph.nodes.push_back(EveryAttribute());
  graph.nodes.push_back(VariableNode("w", "/job:ps/task:0"));
  AddConstants(graph);
  AddChain(graph, 300);
  return graph;
}

GraphDef SampleVariables() {
  GraphDef graph;
  graph.seed = 42;
  graph.nodes.push_back(VariableNode("fc1/weight", "/job:ps/task:0/device:CPU:0"));
  graph.nodes.push_back(VariableNode("fc2/weight", "/job:ps/task:1/device:CPU:0"));
  return graph;
}

GraphDef SamplePartition() {
  GraphDef graph;
  graph.seed = 1;
  Node recv;
  recv.name = "recv_1";
  recv.op = "Recv";
  recv.device = "/job:ps/task:0/device:CPU:0";
  recv.attrs = {{"edge", std::int64_t{1}},
                {"from", std::string("/job:worker/task:0/device:CPU:0")},
                {"control", false}};
  recv.outputs.push_back({at::kFloat, std::vector<std::int64_t>{10}, false});
  graph.nodes.push_back(std::move(recv));
  AddChain(graph, 3);
  return graph;
}

std::string Difference(const GraphDef& a, const GraphDef& b) {
  if (a.seed != b.seed) return "seeds";
  if (a.nodes.size() != b.nodes.size()) return "number of nodes";
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    const std::string difference = NodeDifference(a.nodes[i], b.nodes[i]);
    if (!difference.empty()) return a.nodes[i].name + ": " + difference;
  }
  return "";
}

}  // namespace weir::rpc
