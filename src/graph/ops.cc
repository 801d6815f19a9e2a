#include "weir/ops.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace weir {
namespace {

constexpr std::monostate kNone;

Graph* GraphOf(const AtenArg& arg) {
  if (const auto* output = std::get_if<Output>(&arg)) return output->graph();
  if (const auto* list = std::get_if<std::vector<Output>>(&arg)) {
    for (const Output& output : *list) {
      if (output.valid()) return output.graph();
    }
  }
  return nullptr;
}

// The graph of the first tensor is where the node goes. Without any there is no graph to tell the
// error to: the result is then "no tensor", which the next node that takes it complains about.
std::vector<Output> Call(const std::string& op, const std::string& overload,
                         std::vector<AtenArg> args) {
  for (const AtenArg& arg : args) {
    if (Graph* graph = GraphOf(arg)) {
      return graph->Aten("aten::" + op, overload, std::move(args), op);
    }
  }
  return {};
}

Output CallOne(const std::string& op, const std::string& overload, std::vector<AtenArg> args) {
  std::vector<Output> outputs = Call(op, overload, std::move(args));
  return outputs.empty() ? Output() : outputs.front();
}

}  // namespace

Output operator+(Output a, Output b) {
  return ops::add(a, b);
}
Output operator-(Output a, Output b) {
  return ops::sub(a, b);
}
Output operator*(Output a, Output b) {
  return ops::mul(a, b);
}
Output operator/(Output a, Output b) {
  return ops::div(a, b);
}
Output operator-(Output a) {
  return ops::neg(a);
}

namespace ops {

Output add(Output a, Output b) {
  return CallOne("add", "Tensor", {a, b});
}
Output sub(Output a, Output b) {
  return CallOne("sub", "Tensor", {a, b});
}
Output mul(Output a, Output b) {
  return CallOne("mul", "Tensor", {a, b});
}
Output div(Output a, Output b) {
  return CallOne("div", "Tensor", {a, b});
}
Output mul_scalar(Output a, double factor) {
  return CallOne("mul", "Scalar", {a, factor});
}
Output add_scalar(Output a, double summand) {
  return CallOne("add", "Scalar", {a, summand});
}
Output neg(Output a) {
  return CallOne("neg", "", {a});
}
Output exp(Output a) {
  return CallOne("exp", "", {a});
}
Output log(Output a) {
  return CallOne("log", "", {a});
}
Output sqrt(Output a) {
  return CallOne("sqrt", "", {a});
}
Output pow(Output a, double exponent) {
  return CallOne("pow", "Tensor_Scalar", {a, exponent});
}
Output square(Output a) {
  return CallOne("square", "", {a});
}
Output matmul(Output a, Output b) {
  return CallOne("matmul", "", {a, b});
}

Output linear(Output input, Output weight, Output bias) {
  return CallOne("linear", "", {input, weight, bias});
}

Output relu(Output a) {
  return CallOne("relu", "", {a});
}
Output sigmoid(Output a) {
  return CallOne("sigmoid", "", {a});
}
Output tanh(Output a) {
  return CallOne("tanh", "", {a});
}
Output gelu(Output a) {
  return CallOne("gelu", "", {a});
}
Output softmax(Output a, std::int64_t dim) {
  return CallOne("softmax", "int", {a, dim});
}
Output log_softmax(Output a, std::int64_t dim) {
  return CallOne("log_softmax", "int", {a, dim});
}

Output cross_entropy_loss(Output logits, Output labels) {
  return CallOne("cross_entropy_loss", "", {logits, labels});
}

Output mse_loss(Output prediction, Output target) {
  return CallOne("mse_loss", "", {prediction, target});
}

Output binary_cross_entropy_with_logits(Output logits, Output target) {
  return CallOne("binary_cross_entropy_with_logits", "", {logits, target});
}

Output conv2d(Output input, Output weight, Output bias, std::vector<std::int64_t> stride,
              std::vector<std::int64_t> padding, std::vector<std::int64_t> dilation,
              std::int64_t groups) {
  return CallOne(
      "conv2d", "",
      {input, weight, bias, std::move(stride), std::move(padding), std::move(dilation), groups});
}

Output max_pool2d(Output input, std::vector<std::int64_t> kernel, std::vector<std::int64_t> stride,
                  std::vector<std::int64_t> padding) {
  return CallOne("max_pool2d", "",
                 {input, std::move(kernel), std::move(stride), std::move(padding)});
}

Output avg_pool2d(Output input, std::vector<std::int64_t> kernel,
                  std::vector<std::int64_t> stride) {
  return CallOne("avg_pool2d", "", {input, std::move(kernel), std::move(stride)});
}

Output layer_norm(Output input, std::vector<std::int64_t> normalized_shape, Output weight,
                  Output bias, double eps) {
  return CallOne("layer_norm", "", {input, std::move(normalized_shape), weight, bias, eps});
}

// The mask is drawn like the input, but no gradient flows to it: its formula for one is zeros,
// which would be computed and added for nothing.
Output dropout(Output input, double probability) {
  const bool in_range = probability >= 0 && probability < 1;  // false for NaN
  if (input.valid() && !in_range) {
    input.graph()->AddError(absl::InvalidArgumentError(
        absl::StrCat("dropout of '", input.name(), "': the probability is ", probability,
                     ", and must be at least 0 and less than 1")));
    return input;
  }
  const double kept = 1 - probability;
  const Output mask = CallOne("bernoulli", "p", {CallOne("detach", "", {input}), kept, kNone});
  return mul(input, mul_scalar(mask, 1 / kept));
}

Output reshape(Output a, std::vector<std::int64_t> shape) {
  return CallOne("reshape", "", {a, std::move(shape)});
}

Output flatten(Output a, std::int64_t start_dim, std::int64_t end_dim) {
  return CallOne("flatten", "using_ints", {a, start_dim, end_dim});
}

Output transpose(Output a, std::int64_t dim0, std::int64_t dim1) {
  return CallOne("transpose", "int", {a, dim0, dim1});
}

Output permute(Output a, std::vector<std::int64_t> dims) {
  return CallOne("permute", "", {a, std::move(dims)});
}

Output cat(const std::vector<Output>& tensors, std::int64_t dim) {
  return CallOne("cat", "", {tensors, dim});
}

Output stack(const std::vector<Output>& tensors, std::int64_t dim) {
  return CallOne("stack", "", {tensors, dim});
}

std::vector<Output> split(Output a, std::int64_t split_size, std::int64_t dim) {
  return Call("split", "Tensor", {a, split_size, dim});
}

Output slice(Output a, std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step) {
  return CallOne("slice", "Tensor", {a, dim, start, end, step});
}

Output sum(Output a) {
  return CallOne("sum", "", {a});
}

Output sum(Output a, std::vector<std::int64_t> dims, bool keepdim) {
  return CallOne("sum", "dim_IntList", {a, std::move(dims), keepdim});
}

Output mean(Output a) {
  return CallOne("mean", "", {a});
}

Output mean(Output a, std::vector<std::int64_t> dims, bool keepdim) {
  return CallOne("mean", "dim", {a, std::move(dims), keepdim});
}

Output argmax(Output a, std::int64_t dim) {
  return CallOne("argmax", "", {a, dim});
}
Output eq(Output a, Output b) {
  return CallOne("eq", "Tensor", {a, b});
}
Output to(Output a, at::ScalarType dtype) {
  return CallOne("to", "dtype", {a, dtype});
}

Output accuracy(Output logits, Output labels) {
  return mean(to(eq(argmax(logits, -1), labels), at::kFloat));
}

Output embedding(Output weight, Output indices) {
  return CallOne("embedding", "", {weight, indices});
}

}  // namespace ops
}  // namespace weir
