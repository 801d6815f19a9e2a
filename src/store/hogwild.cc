#include "store/hogwild.h"

#include <cstdint>
#include <cstring>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_UNDER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define WEIR_UNDER_TSAN 1
#endif

namespace weir::store {

#if defined(WEIR_UNDER_TSAN)

// Volatile, so that the compiler does not turn the loops back into the memcpy that TSan intercepts.
WEIR_HOGWILD void HogwildCopy(void* to, const void* from, std::size_t bytes) {
  auto* target = static_cast<volatile std::uint8_t*>(to);
  const auto* source = static_cast<const volatile std::uint8_t*>(from);
  std::size_t done = 0;
  if ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % 8 == 0) {
    for (; done + 8 <= bytes; done += 8) {
      *reinterpret_cast<volatile std::uint64_t*>(target + done) =
          *reinterpret_cast<const volatile std::uint64_t*>(source + done);
    }
  }
  for (; done < bytes; ++done) target[done] = source[done];
}

#else

void HogwildCopy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

#endif

}  // namespace weir::store
