// What can go wrong on an in-process wire.
#pragma once

#include <functional>

#include "base/scheduler.h"
#include "transport/frame.h"

namespace weir::transport::inproc {

/// Faults that the wire's seed draws. Probabilities are per frame.
struct Faults {
  /// What travels takes a time between these two; the order of a direction is kept.
  Duration delay_min = Duration::zero();
  Duration delay_max = Duration::zero();
  double split = 0;        // the frame arrives in several pieces, as a short read brings it
  double duplicate = 0;    // the frame is delivered twice
  double lose = 0;         // the connection is lost instead of the frame being delivered
  double lose_inside = 0;  // ... after some of the frame's bytes
};

/// The fate of one frame.
enum class Fate {
  kDeliver,
  kSplit,
  kDuplicate,
  kLose,        // the connection is lost, nothing of the frame arrives
  kLoseInside,  // the connection is lost in the middle of the frame
  kLoseAfter,   // the frame arrives, then the connection is lost: the answer never comes
};

/// Decides the fate of each frame that is sent, for tests that want a certain one to meet it.
/// Called by the sending thread, one at a time.
using FateFunction = std::function<Fate(const FrameHeader&)>;

}  // namespace weir::transport::inproc
