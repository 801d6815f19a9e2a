#include "transport/tcp/send_queue.h"

#include <algorithm>
#include <utility>

namespace weir::transport::tcp {

void SendQueue::Push(SealedFrame frame) {
  bytes_ += frame.size();
  frames_.push_back(std::move(frame));
}

std::size_t SendQueue::Gather(std::size_t bytes_max, std::span<iovec> out) const {
  std::size_t used = 0;
  std::size_t skip = first_sent_;
  for (const SealedFrame& frame : frames_) {
    for (std::span<const std::byte> part : frame.Parts()) {
      const std::size_t skipped = std::min(skip, part.size());
      skip -= skipped;
      part = part.subspan(skipped);
      part = part.first(std::min(part.size(), bytes_max));
      if (part.empty()) continue;
      out[used++] = {.iov_base = const_cast<std::byte*>(part.data()), .iov_len = part.size()};
      bytes_max -= part.size();
      if (used == out.size() || bytes_max == 0) return used;
    }
  }
  return used;
}

void SendQueue::Consume(std::size_t bytes, std::vector<SealedFrame>& done) {
  bytes_ -= bytes;
  first_sent_ += bytes;
  while (!frames_.empty() && first_sent_ >= frames_.front().size()) {
    first_sent_ -= frames_.front().size();
    done.push_back(std::move(frames_.front()));
    frames_.pop_front();
  }
}

}  // namespace weir::transport::tcp
