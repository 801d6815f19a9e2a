#include "executor/step_state.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace weir::executor {
namespace {

void Push(std::vector<std::uint32_t>& heap, std::uint32_t node) {
  heap.push_back(node);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

std::uint32_t Pop(std::vector<std::uint32_t>& heap) {
  if (heap.empty()) return kNone;
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  const std::uint32_t node = heap.back();
  heap.pop_back();
  return node;
}

// The same bytes without autograd's history, and with a version counter of their own: a variable
// that is read in place may be assigned to before the backward call looks at what it saved.
at::Tensor Detached(const at::Tensor& tensor) {
  return tensor.defined() && tensor.requires_grad() ? tensor.variable_data() : tensor;
}

Value MakeLeaf(const Value& source) {
  if (!source.tensor.defined()) return source;
  Value leaf{source.tensor.variable_data(), source.version};
  if (at::isFloatingType(leaf.tensor.scalar_type()) ||
      at::isComplexType(leaf.tensor.scalar_type())) {
    leaf.tensor.set_requires_grad(true);
  }
  return leaf;
}

}  // namespace

StepState::StepState(const ProgramImpl& program)
    : program_(program),
      layout_(program.layout),
      slots_(layout_.references.size()),
      references_(layout_.references),
      pending_(layout_.pending),
      backwards_(layout_.backwards),
      versions_(program.num_version_slots, kNoVersion),
      ready_(program.ready),
      ready_eager_(program.ready_eager),
      incomplete_(layout_.nodes.size()) {}

std::uint32_t StepState::TakeReady() {
  const std::uint32_t eager = TakeReadyEager();
  return eager != kNone ? eager : Pop(ready_);
}

std::uint32_t StepState::TakeReadyEager() {
  return Pop(ready_eager_);
}

void StepState::PrepareInputs(std::uint32_t node) {
  const Range inputs = layout_.nodes[node].inputs;
  for (std::uint32_t i = inputs.begin; i < inputs.end; ++i) {
    const std::uint32_t slot = layout_.inputs[i];
    if (slot < layout_.first_leaf || slots_[slot].tensor.defined()) continue;
    slots_[slot] = MakeLeaf(slots_[layout_.leaf_sources[slot - layout_.first_leaf]]);
  }
}

void StepState::SetOutput(std::uint32_t node, std::uint32_t index, Value value) {
  const std::uint32_t slot = layout_.nodes[node].outputs.begin + index;
  const OutputPlan& output = layout_.outputs[slot];
  if (output.version_slot != kNone) versions_[output.version_slot] = value.version;
  if (output.live != kNone) slots_[output.live] = value;
  if (references_[slot] > 0) slots_[slot] = {Detached(value.tensor), value.version};
  Tell(output.consumers);
}

void StepState::Complete(std::uint32_t node) {
  const NodePlan& plan = layout_.nodes[node];
  --incomplete_;
  for (std::uint32_t i = plan.releases.begin; i < plan.releases.end; ++i) {
    const std::uint32_t slot = layout_.releases[i];
    if (--references_[slot] == 0) slots_[slot].tensor.reset();
  }
  Tell(plan.controls);
}

void StepState::Tell(Range targets) {
  for (std::uint32_t i = targets.begin; i < targets.end; ++i) {
    const std::uint32_t node = layout_.targets[i];
    if (--pending_[node] == 0) Push(program_.eager[node] ? ready_eager_ : ready_, node);
  }
}

void StepState::Clear() {
  slots_.clear();
}

}  // namespace weir::executor
