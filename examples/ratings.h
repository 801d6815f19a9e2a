// Ratings that nobody gave: a seeded stand-in for a log of users and items, of any size.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace examples {

struct RatingsOptions {
  std::int64_t users = 5'000;
  std::int64_t items = 5'000;
  std::int64_t ratings = 500'000;
  std::uint64_t seed = 0;
};

/// Rating k is that of item items[k] by user users[k]. Items are as popular as Zipf's law says
/// (item i in proportion to 1/(i + 1)), users equally active. A rating is 3.5, what the user and
/// the item add to it, the product of their hidden factors, and noise of variance 0.25: no model
/// has a smaller mean squared error than that.
struct Ratings {
  at::Tensor users, items;  // int64 {n}
  at::Tensor ratings;       // float {n}
};

Ratings MakeRatings(const RatingsOptions& options);

/// Rows `at` of the ratings.
Ratings Select(const Ratings& ratings, const at::Tensor& at);
/// The ratings from `begin` to `end`.
Ratings Range(const Ratings& ratings, std::int64_t begin, std::int64_t end);

}  // namespace examples
