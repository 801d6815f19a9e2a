#include "graph/module_call.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

namespace weir::graph {
namespace {

bool IsOneOf(const std::vector<at::Tensor>& tensors, const at::Tensor& tensor) {
  return std::ranges::any_of(tensors, [&](const at::Tensor& one) { return one.is_same(tensor); });
}

// What the graph gets in the place of an output. Parameters and buffers of the replica are other
// tensors after the next step, so neither leaves it. And autograd has saved tensors of the replica
// for the way back, so that it is kept until autograd lets go: by a hook on a tensor that the
// replica itself has no way to. On one that it holds, its own parameter or what forward left in a
// member, the hook would hold the replica for ever.
at::Tensor Release(const std::shared_ptr<ModuleReplica>& replica, const at::Tensor& output) {
  if (!output.defined()) return output;
  if (IsOneOf(replica->buffers, output)) return Release(replica, output.clone());
  if (!output.requires_grad())
    return IsOneOf(replica->parameters, output) ? output.variable_data() : output;
  at::Tensor released = at::alias(output);
  if (released.requires_grad()) released.register_hook([replica](const at::Tensor&) {});
  return released;
}

// An infinity less itself is no number, and would not leave the variable as it was.
at::Tensor Difference(const at::Tensor& now, const at::Tensor& before) {
  return at::sub(now, before).masked_fill_(at::eq(now, before), 0);
}

void AppendRows(const at::Tensor& now, const at::Tensor& before, std::vector<at::Tensor>& outputs) {
  const at::Tensor rows = at::ne(now, before).flatten(1).any(1).nonzero().flatten();
  outputs.push_back(rows);
  outputs.push_back(Difference(now.index_select(0, rows), before.index_select(0, rows)));
}

void AppendChanges(const ModuleReplica& replica, const std::vector<at::Tensor>& values,
                   std::vector<at::Tensor>& outputs) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < replica.buffers.size(); ++i) {
    const at::Tensor now = replica.buffers[i].detach();
    const at::Tensor& before = values[values.size() - replica.buffers.size() + i];
    const BufferChange change = ChangeOf(now);
    if (change == BufferChange::kSum) outputs.push_back(Difference(now, before));
    if (change == BufferChange::kRows) AppendRows(now, before, outputs);
  }
}

}  // namespace

BufferChange ChangeOf(const at::Tensor& buffer) {
  if (buffer.scalar_type() == at::kBool) return BufferChange::kNone;
  return buffer.dim() < 2 ? BufferChange::kSum : BufferChange::kRows;
}

ModuleCall::ModuleCall(std::shared_ptr<ModuleReplicas> replicas, ModuleForward forward,
                       std::size_t num_inputs, bool changes)
    : replicas_(std::move(replicas)),
      forward_(std::move(forward)),
      num_inputs_(static_cast<std::ptrdiff_t>(num_inputs)),
      changes_(changes) {}

std::vector<at::Tensor> ModuleCall::operator()(const std::vector<at::Tensor>& values) const {
  const std::shared_ptr<ModuleReplica> replica = replicas_->Take();
  replica->Bind({values.begin() + num_inputs_, values.end()});
  std::vector<at::Tensor> outputs =
      forward_(*replica->module, {values.begin(), values.begin() + num_inputs_});
  for (at::Tensor& output : outputs) output = Release(replica, output);
  if (changes_) AppendChanges(*replica, values, outputs);
  return outputs;
}

}  // namespace weir::graph
