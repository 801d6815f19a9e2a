// What one step has computed so far: values in slots, and which nodes may run next.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/program_impl.h"

namespace weir::executor {

/// Not thread-safe: a step is a strand. Knows no thread and no kernel.
class StepState {
 public:
  /// `program` outlives the state.
  explicit StepState(const ProgramImpl& program);

  /// The next node to run: an eager one if any is ready, else the first in topological order.
  /// kNone when none is ready.
  std::uint32_t TakeReady();
  /// The first eager node that is ready, or kNone.
  std::uint32_t TakeReadyEager();

  /// Makes the leaves that `node` is the first to read.
  void PrepareInputs(std::uint32_t node);
  std::uint32_t num_inputs(std::uint32_t node) const { return layout_.nodes[node].inputs.size(); }
  const Value& input(std::uint32_t node, std::uint32_t index) const {
    return slots_[layout_.inputs[layout_.nodes[node].inputs.begin + index]];
  }
  /// Stores one output and tells its consumers.
  void SetOutput(std::uint32_t node, std::uint32_t index, Value value);
  /// The node has run: tells those who wait for that, and drops values nobody else will read.
  void Complete(std::uint32_t node);

  std::uint64_t version(std::uint32_t version_slot) const { return versions_[version_slot]; }
  bool IsLastBackward(std::uint32_t segment) { return --backwards_[segment] == 0; }
  bool all_complete() const { return incomplete_ == 0; }
  /// Drops every value.
  void Clear();

 private:
  void Tell(Range targets);

  const ProgramImpl& program_;
  const Layout& layout_;
  std::vector<Value> slots_;
  std::vector<std::int32_t> references_;  // by slot
  std::vector<std::int32_t> pending_;     // by node
  std::vector<std::int32_t> backwards_;   // by segment
  std::vector<std::uint64_t> versions_;
  // Heaps, the smallest node first.
  std::vector<std::uint32_t> ready_;
  std::vector<std::uint32_t> ready_eager_;
  std::size_t incomplete_ = 0;
};

}  // namespace weir::executor
