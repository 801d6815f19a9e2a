// Numbers too small to matter, treated as zero while an update rule runs.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace weir::optim {

/// While it lives, denormal results and operands of this thread's arithmetic are zero. A slot that
/// decays, such as Adam's m for a weight whose gradient has stopped, becomes denormal after some
/// 800 updates and stays so for hundreds more, and each operation on it takes a processor of x86
/// fifty times as long. TensorFlow's executor does the same (ScopedFlushDenormal). On other
/// processors, which do not slow down, it does nothing.
class FlushDenormals {
 public:
#if defined(__SSE2__)
  FlushDenormals() : before_(_mm_getcsr()) {
    _mm_setcsr(before_ | kFlushToZero | kDenormalsAreZero);
  }
  ~FlushDenormals() { _mm_setcsr(before_); }
#else
  FlushDenormals() = default;
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__SSE2__)
  static constexpr unsigned kFlushToZero = 0x8000;
  static constexpr unsigned kDenormalsAreZero = 0x0040;
  const unsigned before_;
#endif
};

}  // namespace weir::optim
