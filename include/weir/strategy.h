// How gradients become updates.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "weir/graph.h"
#include "weir/optimizer.h"

namespace weir {

/// The variable that counts completed training steps.
inline constexpr char kGlobalStepName[] = "global_step";

/// Rewrites a graph: adds what trains it. One strategy serves any number of graphs.
class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string name() const = 0;

  /// The target that makes one training step: gradients of `loss` with respect to the graph's
  /// trainable variables, each applied by `optimizer` on the task that owns its variable, then
  /// global_step + 1. One for a graph: a second is InvalidArgument, since two steps under one
  /// ticket would be counted as one. A loss that was never assigned gives an operation that Run
  /// refuses.
  virtual Operation Minimize(const OptimizerSpec& optimizer, Output loss) = 0;
};

struct AsyncOptions {
  /// Training stops when this many steps have completed in all; no step beyond it begins. -1: no
  /// limit.
  std::int64_t stop_at_step = -1;
  /// Where global_step is made when the graph has none yet; null: where the scopes around Minimize
  /// say.
  DeviceFunction global_step_device = nullptr;
};

/// Asynchronous: every worker's gradient is applied as it arrives, nobody waits for anybody.
std::unique_ptr<Strategy> NewAsyncStrategy(const AsyncOptions& options = {});

/// One update of `variable` by `gradient`, on the task that owns it: for training loops that make
/// their gradients themselves (clipped, scaled, computed by a Function). Runs when it is a target,
/// or what a target depends on.
Operation ApplyGradient(const OptimizerSpec& optimizer, const Variable& variable, Output gradient);

/// The graph's global_step variable, made when it is missing: an int64 scalar, placed like any
/// variable.
Variable GlobalStep(Graph& graph);

}  // namespace weir
