// Memory that is read and written by several threads without locks, on purpose.
//
// Hogwild (Niu et al. 2011) lets updates and reads of a variable race: every element is a plain
// load or store of a machine word, so that a reader gets an old or a new element, never half of
// one, and the loops stay vectorised. Atomics for each element would cost a factor of 2 in memory
// and of 12 in cache. The C++ memory model calls this a race and ThreadSanitizer reports it; the
// functions that race by design carry WEIR_HOGWILD, and nothing else does.
#pragma once

#include <cstddef>

/// The function's own loads and stores are not watched by ThreadSanitizer. What it calls still is,
/// memcpy included (TSan intercepts it), so such a function calls nothing that touches the racing
/// memory.
#define WEIR_HOGWILD __attribute__((no_sanitize("thread")))

namespace weir::store {

/// memcpy whose source or destination other threads may be writing meanwhile. Aligned elements of
/// up to 8 bytes are copied whole. REQUIRES: both are aligned to their element size.
void HogwildCopy(void* to, const void* from, std::size_t bytes);

}  // namespace weir::store
