// Readable names for the operators people use; each is a thin front of Graph::Aten, which reaches
// all others. Shapes and semantics are those of the libtorch operator of the same name.
#pragma once

#include <cstdint>
#include <vector>

#include "weir/graph.h"

namespace weir {

Output operator+(Output a, Output b);
Output operator-(Output a, Output b);
Output operator*(Output a, Output b);
Output operator/(Output a, Output b);
Output operator-(Output a);

namespace ops {

Output add(Output a, Output b);
Output sub(Output a, Output b);
Output mul(Output a, Output b);
Output div(Output a, Output b);
/// Every element times (plus) a number.
Output mul_scalar(Output a, double factor);
Output add_scalar(Output a, double summand);
Output neg(Output a);
Output exp(Output a);
Output log(Output a);
Output sqrt(Output a);
Output pow(Output a, double exponent);
Output square(Output a);
Output matmul(Output a, Output b);
/// input {..., in} times weight {out, in} transposed, plus bias {out} when given.
Output linear(Output input, Output weight, Output bias = {});
Output relu(Output a);
Output sigmoid(Output a);
Output tanh(Output a);
Output gelu(Output a);
Output softmax(Output a, std::int64_t dim);
Output log_softmax(Output a, std::int64_t dim);
/// Mean over the batch of logits {batch, classes} and int64 labels {batch}.
Output cross_entropy_loss(Output logits, Output labels);
Output mse_loss(Output prediction, Output target);
Output binary_cross_entropy_with_logits(Output logits, Output target);
Output conv2d(Output input, Output weight, Output bias = {},
              std::vector<std::int64_t> stride = {1, 1}, std::vector<std::int64_t> padding = {0, 0},
              std::vector<std::int64_t> dilation = {1, 1}, std::int64_t groups = 1);
Output max_pool2d(Output input, std::vector<std::int64_t> kernel,
                  std::vector<std::int64_t> stride = {},
                  std::vector<std::int64_t> padding = {0, 0});
Output avg_pool2d(Output input, std::vector<std::int64_t> kernel,
                  std::vector<std::int64_t> stride = {});
Output layer_norm(Output input, std::vector<std::int64_t> normalized_shape, Output weight = {},
                  Output bias = {}, double eps = 1e-5);
/// Zeroes each element with probability `probability` and scales the rest by 1 / (1 - probability);
/// drawn from the generator of (graph seed, node, step): bernoulli times scale.
Output dropout(Output input, double probability);
Output reshape(Output a, std::vector<std::int64_t> shape);
Output flatten(Output a, std::int64_t start_dim = 1, std::int64_t end_dim = -1);
Output transpose(Output a, std::int64_t dim0, std::int64_t dim1);
Output permute(Output a, std::vector<std::int64_t> dims);
Output cat(const std::vector<Output>& tensors, std::int64_t dim = 0);
Output stack(const std::vector<Output>& tensors, std::int64_t dim = 0);
std::vector<Output> split(Output a, std::int64_t split_size, std::int64_t dim = 0);
Output slice(Output a, std::int64_t dim, std::int64_t start, std::int64_t end,
             std::int64_t step = 1);
Output sum(Output a);
Output sum(Output a, std::vector<std::int64_t> dims, bool keepdim = false);
Output mean(Output a);
Output mean(Output a, std::vector<std::int64_t> dims, bool keepdim = false);
Output argmax(Output a, std::int64_t dim);
Output eq(Output a, Output b);
Output to(Output a, at::ScalarType dtype);
/// Fraction of rows of logits {batch, classes} whose largest entry is the label {batch}.
Output accuracy(Output logits, Output labels);
/// Rows of `weight` {n, d} picked by int64 `indices`; a dense gradient.
Output embedding(Output weight, Output indices);

}  // namespace ops
}  // namespace weir
