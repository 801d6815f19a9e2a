#include "ratings.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace examples {
namespace {

constexpr std::int64_t kFactors = 4;

at::Tensor Draw(std::vector<std::int64_t> shape, double stddev, const at::Generator& generator) {
  return at::randn(shape, generator, at::kFloat) * stddev;
}

/// Item i with a probability in proportion to 1 / (i + 1), by the inverse of the distribution.
at::Tensor DrawZipf(std::int64_t items, std::int64_t count, const at::Generator& generator) {
  const at::Tensor weights = at::reciprocal(at::arange(1, items + 1, at::kDouble));
  const at::Tensor sums = at::cumsum(weights, 0);
  const at::Tensor points = at::rand({count}, generator, at::kDouble) * sums[-1];
  return at::clamp_max(at::searchsorted(sums, points), items - 1);
}

}  // namespace

Ratings MakeRatings(const RatingsOptions& options) {
  const at::Generator random = at::detail::createCPUGenerator(options.seed);
  const at::Tensor user_factors = Draw({options.users, kFactors}, 0.7, random);
  const at::Tensor item_factors = Draw({options.items, kFactors}, 0.7, random);
  const at::Tensor user_bias = Draw({options.users}, 0.3, random);
  const at::Tensor item_bias = Draw({options.items}, 0.3, random);
  Ratings all;
  all.users = at::randint(options.users, {options.ratings}, random, at::kLong);
  all.items = DrawZipf(options.items, options.ratings, random);
  const at::Tensor product =
      (user_factors.index_select(0, all.users) * item_factors.index_select(0, all.items)).sum(1);
  all.ratings = 3.5 + user_bias.index_select(0, all.users) + item_bias.index_select(0, all.items) +
                product + Draw({options.ratings}, 0.5, random);
  return all;
}

Ratings Select(const Ratings& ratings, const at::Tensor& at) {
  return {.users = ratings.users.index_select(0, at),
          .items = ratings.items.index_select(0, at),
          .ratings = ratings.ratings.index_select(0, at)};
}

Ratings Range(const Ratings& ratings, std::int64_t begin, std::int64_t end) {
  return {.users = ratings.users.slice(0, begin, end),
          .items = ratings.items.slice(0, begin, end),
          .ratings = ratings.ratings.slice(0, begin, end)};
}

}  // namespace examples
