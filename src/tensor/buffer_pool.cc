#include "tensor/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <limits>
#include <list>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status.h"

namespace weir {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr std::size_t kHugeBlockBytesMin = 2 * kHugePageBytes;
constexpr std::size_t kBlockBytesMax = std::numeric_limits<std::size_t>::max() / 4;

std::size_t AlignmentFor(std::size_t bytes) {
  return bytes >= kHugeBlockBytesMin ? kHugePageBytes : BufferPool::kAlignment;
}

void* AllocateFromHeap(std::size_t bytes) {
  void* const block = ::operator new(bytes, std::align_val_t(AlignmentFor(bytes)), std::nothrow);
  // Only advice: what comes of it does not matter, the block is good without.
  if (block != nullptr && bytes >= kHugeBlockBytesMin) ::madvise(block, bytes, MADV_HUGEPAGE);
  return block;
}

void FreeToHeap(void* block, std::size_t bytes) {
  ::operator delete(block, std::align_val_t(AlignmentFor(bytes)));
}

/// Rounds up to a size class: eight classes between one power of two and the next.
std::size_t BlockBytes(std::size_t bytes) {
  bytes = std::max(bytes, BufferPool::kAlignment);
  const std::size_t step = std::max(std::bit_floor(bytes) / 8, BufferPool::kAlignment);
  return (bytes + step - 1) / step * step;
}

}  // namespace

BlockSource BlockSource::Heap() {
  return {.allocate = AllocateFromHeap, .free = FreeToHeap};
}

/// Outlives the pool for as long as there are leases.
class BufferPool::Core : public std::enable_shared_from_this<Core> {
 public:
  explicit Core(Options options) : options_(std::move(options)) {}

  ~Core() {
    for (const Block& block : idle_) options_.source.free(block.data, block.bytes);
  }

  absl::StatusOr<Buffer> Lease(std::size_t bytes) {
    if (bytes > kBlockBytesMax) return NoMemory(bytes);
    const std::size_t block_bytes = BlockBytes(bytes);
    void* block = TakeIdle(block_bytes);
    if (block == nullptr) block = Allocate(block_bytes);
    if (block == nullptr) return NoMemory(bytes);
    std::shared_ptr<void> owner(block, [core = shared_from_this(), block_bytes](void* returned) {
      core->Return({returned, block_bytes});
    });
    return Buffer{std::move(owner), static_cast<std::byte*>(block), bytes};
  }

  /// The pool is gone: from now on returned blocks are freed.
  void Close() {
    std::vector<Block> freed;
    {
      MutexLock lock(mutex_);
      idle_bytes_max_ = 0;
      freed = TakeExcess();
    }
    Free(freed);
  }

  Counters GetCounters() const {
    MutexLock lock(mutex_);
    return counters_;
  }

 private:
  struct Block {
    void* data;
    std::size_t bytes;
  };
  using IdleList = std::list<Block>;  // returned longest ago first

  static absl::Status NoMemory(std::size_t bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a buffer of ", bytes, " bytes"));
  }

  /// The block of this class that was used last, still warm in the caches; or null.
  void* TakeIdle(std::size_t bytes) {
    MutexLock lock(mutex_);
    const auto found = idle_of_class_.find(bytes);
    if (found == idle_of_class_.end()) return nullptr;
    const IdleList::iterator newest = found->second.back();
    found->second.pop_back();
    if (found->second.empty()) idle_of_class_.erase(found);
    void* const block = newest->data;
    idle_.erase(newest);
    counters_.bytes_idle -= bytes;
    CountLeased(bytes);
    return block;
  }

  void* Allocate(std::size_t bytes) {
    void* block = options_.source.allocate(bytes);
    if (block == nullptr && FreeAllIdle()) block = options_.source.allocate(bytes);
    if (block == nullptr) return nullptr;
    MutexLock lock(mutex_);
    ++counters_.blocks_allocated;
    CountLeased(bytes);
    return block;
  }

  void Return(Block block) {
    std::vector<Block> freed;
    {
      MutexLock lock(mutex_);
      --counters_.blocks_leased;
      counters_.bytes_leased -= block.bytes;
      counters_.bytes_idle += block.bytes;
      idle_.push_back(block);
      idle_of_class_[block.bytes].push_back(std::prev(idle_.end()));
      freed = TakeExcess();
    }
    Free(freed);
  }

  bool FreeAllIdle() {
    std::vector<Block> freed;
    {
      MutexLock lock(mutex_);
      freed = TakeIdleBeyond(0);
    }
    Free(freed);
    return !freed.empty();
  }

  std::vector<Block> TakeExcess() WEIR_REQUIRES(mutex_) { return TakeIdleBeyond(idle_bytes_max_); }

  std::vector<Block> TakeIdleBeyond(std::size_t bytes_max) WEIR_REQUIRES(mutex_) {
    std::vector<Block> taken;
    while (counters_.bytes_idle > bytes_max) {
      const Block oldest = idle_.front();
      // The oldest block of all is the oldest of its class.
      const auto of_class = idle_of_class_.find(oldest.bytes);
      of_class->second.pop_front();
      if (of_class->second.empty()) idle_of_class_.erase(of_class);
      idle_.pop_front();
      counters_.bytes_idle -= oldest.bytes;
      taken.push_back(oldest);
    }
    return taken;
  }

  void Free(const std::vector<Block>& blocks) const {
    for (const Block& block : blocks) options_.source.free(block.data, block.bytes);
  }

  void CountLeased(std::size_t bytes) WEIR_REQUIRES(mutex_) {
    ++counters_.blocks_leased;
    counters_.bytes_leased += bytes;
  }

  const Options options_;
  mutable Mutex mutex_;
  std::size_t idle_bytes_max_ WEIR_GUARDED_BY(mutex_) = options_.idle_bytes_max;
  Counters counters_ WEIR_GUARDED_BY(mutex_);
  IdleList idle_ WEIR_GUARDED_BY(mutex_);
  std::unordered_map<std::size_t, std::deque<IdleList::iterator>> idle_of_class_
      WEIR_GUARDED_BY(mutex_);
};

BufferPool::BufferPool() : BufferPool(Options()) {}

BufferPool::BufferPool(Options options) : core_(std::make_shared<Core>(std::move(options))) {}

BufferPool::~BufferPool() {
  core_->Close();
}

absl::StatusOr<Buffer> BufferPool::Lease(std::size_t bytes) {
  return core_->Lease(bytes);
}

BufferPool::Counters BufferPool::GetCounters() const {
  return core_->GetCounters();
}

}  // namespace weir
