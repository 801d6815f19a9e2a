#include "store/counter.h"

#include <atomic>

namespace weir::store {
namespace {

// Calls `function` with an atomic reference to the counter.
template <typename Function>
auto Visit(const at::Tensor& counter, Function&& function) {
  if (counter.scalar_type() == at::kInt) {
    return function(std::atomic_ref<std::int32_t>(*counter.data_ptr<std::int32_t>()));
  }
  return function(std::atomic_ref<std::int64_t>(*counter.data_ptr<std::int64_t>()));
}

}  // namespace

bool IsCounter(const Initializer& initializer) {
  return initializer.shape.empty() &&
         (initializer.dtype == at::kLong || initializer.dtype == at::kInt);
}

std::int64_t LoadCounter(const at::Tensor& counter) {
  return Visit(counter, [](auto atomic) -> std::int64_t { return atomic.load(); });
}

void StoreCounter(const at::Tensor& counter, std::int64_t value) {
  Visit(counter, [value](auto atomic) {
    atomic.store(static_cast<typename decltype(atomic)::value_type>(value));
  });
}

void AddToCounter(const at::Tensor& counter, std::int64_t value) {
  Visit(counter, [value](auto atomic) {
    atomic.fetch_add(static_cast<typename decltype(atomic)::value_type>(value));
  });
}

}  // namespace weir::store
