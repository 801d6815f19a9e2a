// What a connection has still to send.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "transport/sealed_frame.h"

namespace weir::transport::tcp {

/// Frames in order, the first perhaps sent in part. Not thread-safe, but what Gather() returned
/// stays valid while frames are pushed.
class SendQueue {
 public:
  void Push(SealedFrame frame);

  /// Describes the next bytes, at most `bytes_max` of them, in `out`. Returns how many entries of
  /// `out` are used; 0 when the queue is empty.
  std::size_t Gather(std::size_t bytes_max, std::span<iovec> out) const;

  /// The first `bytes` bytes have been sent. Frames that are through go to `done`, for the caller
  /// to destroy where no lock is held.
  void Consume(std::size_t bytes, std::vector<SealedFrame>& done);

  std::size_t bytes() const { return bytes_; }
  bool empty() const { return frames_.empty(); }

 private:
  std::deque<SealedFrame> frames_;
  std::size_t first_sent_ = 0;  // bytes of the first frame that are gone
  std::size_t bytes_ = 0;
};

}  // namespace weir::transport::tcp
