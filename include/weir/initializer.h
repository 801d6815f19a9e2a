// First values of variables. An initialiser is data: it travels to the task that owns the variable
// and is run there, so that no initial value crosses the network.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace weir {

struct Initializer {
  enum class Kind : std::uint8_t {
    kConstant = 0,         // every element is a
    kUniform = 1,          // uniform in [a, b)
    kNormal = 2,           // normal, mean a, standard deviation b
    kTruncatedNormal = 3,  // the same, values beyond two standard deviations drawn again
    kValue = 4,            // a copy of `value`
  };
  Kind kind = Kind::kConstant;
  std::vector<std::int64_t> shape;
  at::ScalarType dtype = at::kFloat;
  double a = 0;
  double b = 0;
  at::Tensor value;
};

Initializer Zeros(std::vector<std::int64_t> shape, at::ScalarType dtype = at::kFloat);
Initializer Ones(std::vector<std::int64_t> shape, at::ScalarType dtype = at::kFloat);
Initializer Constant(std::vector<std::int64_t> shape, double value,
                     at::ScalarType dtype = at::kFloat);
Initializer Uniform(std::vector<std::int64_t> shape, double low, double high,
                    at::ScalarType dtype = at::kFloat);
Initializer Normal(std::vector<std::int64_t> shape, double stddev, double mean = 0,
                   at::ScalarType dtype = at::kFloat);
/// As tf.truncated_normal: values further than two standard deviations from the mean are drawn
/// again.
Initializer TruncatedNormal(std::vector<std::int64_t> shape, double stddev, double mean = 0,
                            at::ScalarType dtype = at::kFloat);
/// Glorot and Bengio 2010: uniform in ±sqrt(6 / (fan_in + fan_out)), for weights of shape [out, in]
/// or [in, out], and [out, in, kernel...] of convolutions; a vector of n counts as n in and n out.
Initializer GlorotUniform(std::vector<std::int64_t> shape, at::ScalarType dtype = at::kFloat);
/// The variable starts as a copy of `value`, which is shipped to its task.
Initializer FromTensor(at::Tensor value);

}  // namespace weir
