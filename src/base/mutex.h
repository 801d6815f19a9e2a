// std::mutex with clang's thread-safety annotations. absl::Mutex is invisible to ThreadSanitizer in
// Debian's build, this wrapper is seen by TSan and by -Wthread-safety.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define WEIR_ATTRIBUTE_(x) __attribute__((x))
#else
#define WEIR_ATTRIBUTE_(x)
#endif

#define WEIR_CAPABILITY(x) WEIR_ATTRIBUTE_(capability(x))
#define WEIR_SCOPED_CAPABILITY WEIR_ATTRIBUTE_(scoped_lockable)
#define WEIR_GUARDED_BY(x) WEIR_ATTRIBUTE_(guarded_by(x))
#define WEIR_PT_GUARDED_BY(x) WEIR_ATTRIBUTE_(pt_guarded_by(x))
#define WEIR_REQUIRES(...) WEIR_ATTRIBUTE_(requires_capability(__VA_ARGS__))
#define WEIR_EXCLUDES(...) WEIR_ATTRIBUTE_(locks_excluded(__VA_ARGS__))
#define WEIR_ACQUIRE(...) WEIR_ATTRIBUTE_(acquire_capability(__VA_ARGS__))
#define WEIR_RELEASE(...) WEIR_ATTRIBUTE_(release_capability(__VA_ARGS__))
#define WEIR_TRY_ACQUIRE(...) WEIR_ATTRIBUTE_(try_acquire_capability(__VA_ARGS__))
#define WEIR_NO_THREAD_SAFETY_ANALYSIS WEIR_ATTRIBUTE_(no_thread_safety_analysis)

namespace weir {

class WEIR_CAPABILITY("mutex") Mutex {
 public:
  void Lock() WEIR_ACQUIRE() { mutex_.lock(); }
  void Unlock() WEIR_RELEASE() { mutex_.unlock(); }
  bool TryLock() WEIR_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class WEIR_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) WEIR_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() WEIR_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// A condition variable for Mutex. Wake-ups may be spurious: wait in a loop.
class CondVar {
 public:
  void Wait(Mutex& mutex) WEIR_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  /// Returns false when `deadline` passed before a notification.
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline)
      WEIR_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool notified = condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return notified;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace weir
