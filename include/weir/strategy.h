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

/// What is done to gradients before they leave the worker that made them, in this order. Each
/// worker sees its own gradient only: bounds hold for the gradient of one minibatch, not for the
/// mean or sum of several workers' (in a synchronous round they are averaged afterwards). 0 is off.
/// A bound that is negative or not finite is InvalidArgument.
struct GradientOptions {
  /// g += weight_decay * w, with w as it was read for this step: an L2 term of the loss, PyTorch's
  /// weight_decay of SGD and Adam. (AdamW and LAMB decay on the variable's task, and apart from the
  /// gradient.) Not for variables with sparse gradients, whose other rows are not here.
  double weight_decay = 0;
  /// Every element into [-clip_value, clip_value].
  double clip_value = 0;
  /// g *= clip_norm / max(|g|, clip_norm), for each variable's gradient on its own, with the
  /// Euclidean norm. A norm that is not finite makes the variable's whole gradient NaN.
  /// TensorFlow's clip_by_norm, which makes the finite elements 0 where another is infinite.
  double clip_norm = 0;
  /// The same with one norm, that of all gradients of the step together: no gradient leaves before
  /// all are there. TensorFlow's clip_by_global_norm. The norm of a sparse gradient is that of its
  /// rows, summed by id. A norm that is not finite makes every gradient NaN.
  double clip_global_norm = 0;
};

/// Rewrites a graph: adds what trains it. One strategy serves any number of graphs.
class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string name() const = 0;

  /// The target that makes one training step: gradients of `loss` with respect to the graph's
  /// trainable variables (those of rows that were looked up are sparse), each applied by
  /// `optimizer` on the task that owns its variable, then global_step + 1. One for a graph: a
  /// second is InvalidArgument, since two steps under one ticket would be counted as one. A loss
  /// that was never assigned gives an operation that Run refuses.
  virtual Operation Minimize(const OptimizerSpec& optimizer, Output loss,
                             const GradientOptions& options) = 0;
  Operation Minimize(const OptimizerSpec& optimizer, Output loss) {
    return Minimize(optimizer, loss, {});
  }
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
/// or what a target depends on. An optimizer that counts steps (a schedule, AdagradDA) takes
/// global_step + 1 for the number of this one, as it is when the target runs: nothing here counts
/// it.
Operation ApplyGradient(const OptimizerSpec& optimizer, const Variable& variable, Output gradient);

/// The same by a gradient of some rows: `values` holds one row for each of the int64 list
/// `indices`. Values for one row are summed.
Operation ApplySparseGradient(const OptimizerSpec& optimizer, const Variable& variable,
                              Output indices, Output values);

/// The graph's global_step variable, made when it is missing: an int64 scalar, placed like any
/// variable.
Variable GlobalStep(Graph& graph);

}  // namespace weir
