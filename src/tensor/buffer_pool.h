// Memory that is allocated once and leased again and again.
//
// A fresh buffer costs page faults (hundreds of milliseconds for a gigabyte), a reused one does
// not; and what was leased is never handed out again while somebody still holds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "base/buffer.h"

namespace weir {

/// Where a pool's blocks come from. Blocks must be aligned to BufferPool::kAlignment.
struct BlockSource {
  /// Null when there is no memory.
  std::function<void*(std::size_t bytes)> allocate;
  std::function<void(void* block, std::size_t bytes)> free;

  /// The heap; blocks of several megabytes ask for huge pages.
  static BlockSource Heap();
};

/// Leases 64-byte aligned buffers. When the last copy of a lease's owner goes, its block waits in
/// the pool for the next request of its size class (an eighth of a large block is slack at most).
/// Thread-safe; a lease may outlive the pool, its block is then freed at its end.
///
///   BufferPool pool({.idle_bytes_max = 1 << 30});
///   WEIR_ASSIGN_OR_RETURN(Buffer buffer, pool.Lease(header.payload_bytes));
class BufferPool {
 public:
  static constexpr std::size_t kAlignment = 64;

  struct Options {
    /// Idle blocks beyond this are freed, the one that was used longest ago first.
    std::size_t idle_bytes_max = std::size_t{1} << 30;
    BlockSource source = BlockSource::Heap();
  };

  struct Counters {
    std::uint64_t blocks_allocated = 0;  // since the pool was made
    std::size_t blocks_leased = 0;       // now
    std::size_t bytes_leased = 0;        // now, in whole blocks
    std::size_t bytes_idle = 0;          // now
  };

  BufferPool();
  explicit BufferPool(Options options);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// A buffer of exactly `bytes` bytes with any content; of 0 bytes, too, with data that is not
  /// null. ResourceExhausted when there is no memory.
  absl::StatusOr<Buffer> Lease(std::size_t bytes);

  Counters GetCounters() const;

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace weir
