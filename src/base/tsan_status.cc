// absl's drop of a status's last owner, compiled with ThreadSanitizer. Debian's build of absl has
// it in a library without, so that the count that orders the owners is invisible there, and each
// status that two threads held one after the other is reported as a race.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)

#include "absl/status/status.h"

// The program's definition wins over the shared library's.
void absl::Status::UnrefNonInlined(std::uintptr_t rep) {
  status_internal::StatusRep* const owned = RepToPointer(rep);
  if (owned->ref.fetch_sub(1, std::memory_order_acq_rel) == 1) delete owned;
}

#endif
#endif
