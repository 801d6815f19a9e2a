#include "weir/initializer.h"

#include <cmath>
#include <cstddef>
#include <utility>

namespace weir {
namespace {

Initializer Make(Initializer::Kind kind, std::vector<std::int64_t> shape, at::ScalarType dtype,
                 double a, double b) {
  Initializer initializer;
  initializer.kind = kind;
  initializer.shape = std::move(shape);
  initializer.dtype = dtype;
  initializer.a = a;
  initializer.b = b;
  return initializer;
}

// fan_in + fan_out as PyTorch's layouts have it, [out, in] and [out, in, kernel...]; for rank 2 the
// sum is the same for TensorFlow's [in, out]. A vector counts as n in and n out, a scalar as 1, as
// in TensorFlow's init_ops.py.
double FanSum(const std::vector<std::int64_t>& shape) {
  if (shape.empty()) return 2.0;
  if (shape.size() == 1) return 2.0 * static_cast<double>(shape[0]);
  double receptive_field = 1.0;
  for (std::size_t i = 2; i < shape.size(); ++i) {
    receptive_field *= static_cast<double>(shape[i]);
  }
  return (static_cast<double>(shape[0]) + static_cast<double>(shape[1])) * receptive_field;
}

}  // namespace

Initializer Zeros(std::vector<std::int64_t> shape, at::ScalarType dtype) {
  return Constant(std::move(shape), 0, dtype);
}

Initializer Ones(std::vector<std::int64_t> shape, at::ScalarType dtype) {
  return Constant(std::move(shape), 1, dtype);
}

Initializer Constant(std::vector<std::int64_t> shape, double value, at::ScalarType dtype) {
  return Make(Initializer::Kind::kConstant, std::move(shape), dtype, value, 0);
}

Initializer Uniform(std::vector<std::int64_t> shape, double low, double high,
                    at::ScalarType dtype) {
  return Make(Initializer::Kind::kUniform, std::move(shape), dtype, low, high);
}

Initializer Normal(std::vector<std::int64_t> shape, double stddev, double mean,
                   at::ScalarType dtype) {
  return Make(Initializer::Kind::kNormal, std::move(shape), dtype, mean, stddev);
}

Initializer TruncatedNormal(std::vector<std::int64_t> shape, double stddev, double mean,
                            at::ScalarType dtype) {
  return Make(Initializer::Kind::kTruncatedNormal, std::move(shape), dtype, mean, stddev);
}

Initializer GlorotUniform(std::vector<std::int64_t> shape, at::ScalarType dtype) {
  const double fans = FanSum(shape);
  // An empty weight has no fans: any bound does, as nothing is drawn.
  const double bound = fans > 0 ? std::sqrt(6.0 / fans) : 0.0;
  return Uniform(std::move(shape), -bound, bound, dtype);
}

Initializer FromTensor(at::Tensor value) {
  Initializer initializer;
  initializer.kind = Initializer::Kind::kValue;
  if (value.defined()) {
    initializer.shape = value.sizes().vec();
    initializer.dtype = value.scalar_type();
  }
  initializer.value = std::move(value);
  return initializer;
}

}  // namespace weir
