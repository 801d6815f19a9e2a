#include "executor/kernel.h"

#include <utility>

#include "executor/step_state.h"

namespace weir::executor {

const Value& NodeContext::input(std::size_t index) const {
  return state_.input(node_, static_cast<std::uint32_t>(index));
}

std::size_t NodeContext::num_inputs() const {
  return state_.num_inputs(node_);
}

void NodeContext::SetOutput(std::size_t index, Value value) {
  state_.SetOutput(node_, static_cast<std::uint32_t>(index), std::move(value));
}

Completion NodeContext::Defer() {
  deferred_ = true;
  return host_.Defer(node_);
}

std::uint64_t NodeContext::version(std::uint32_t version_slot) const {
  return state_.version(version_slot);
}

bool NodeContext::IsLastBackward(std::uint32_t segment) {
  return state_.IsLastBackward(segment);
}

}  // namespace weir::executor
